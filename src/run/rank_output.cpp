#include "src/run/rank_output.hpp"

#include <utility>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kKeptLines = 12, kMaxKept = 400;

}  // namespace

std::optional<Action> RankOutput::take(protocol::from_agent::Output output) {
  State& state = at(output.rank);
  if (output.unfinished) {
    state.unfinished = output.text.substr(0, kMaxKept);
    if (!is_shown(output.rank)) return std::nullopt;
    return action::ShowUnfinished{output.rank, output.stream, std::move(output.text)};
  }
  std::vector<std::string> lines = split(output.text, '\n');
  if (lines.back().empty()) lines.pop_back();  // behind the last newline
  if (output.stream == protocol::OutputStream::err)
    for (const std::string& line : lines) state.cause.take(line);
  const std::size_t first = lines.size() - std::min(lines.size(), kKeptLines);
  for (std::size_t i = first; i < lines.size(); ++i) {
    if (state.last.size() == kKeptLines) state.last.pop_front();
    state.last.push_back(lines[i].substr(0, kMaxKept));
  }
  state.unfinished.clear();
  if (!is_shown(output.rank)) return std::nullopt;
  return action::ShowLines{output.rank, output.stream, std::move(lines)};
}

std::vector<std::string> RankOutput::last_lines(Rank rank) const {
  std::vector<std::string> lines(at(rank).last.begin(), at(rank).last.end());
  if (!at(rank).unfinished.empty()) lines.push_back(at(rank).unfinished);
  return lines;
}

}  // namespace dlrun::job
