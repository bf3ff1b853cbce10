#include "src/run/rank_output.hpp"

#include <utility>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kKeptLines = 12, kMaxKept = 400;
constexpr std::size_t kNeverCut = 300;  // bytes of a line; of a longer one, half of a secret might be kept

}  // namespace

std::optional<Action> RankOutput::take(protocol::from_agent::Output output) {
  State& state = at(output.rank);
  if (output.unfinished) {
    state.unfinished = secrets_.hidden(output.text).substr(0, kMaxKept);
    if (!is_shown(output.rank)) return std::nullopt;
    return action::ShowUnfinished{output.rank, output.stream, std::move(output.text)};
  }
  std::vector<std::string> lines = split(output.text, '\n');
  if (lines.back().empty()) lines.pop_back();  // behind the last newline
  const std::size_t first_kept = lines.size() - std::min(lines.size(), kKeptLines);
  for (std::size_t i = output.stream == protocol::OutputStream::err ? 0 : first_kept; i < lines.size(); ++i)
    keep(state, output.stream, lines[i].size() > kNeverCut ? secrets_.hidden(lines[i]) : lines[i]);
  state.unfinished.clear();
  if (!is_shown(output.rank)) return std::nullopt;
  return action::ShowLines{output.rank, output.stream, std::move(lines)};
}

void RankOutput::keep(State& state, protocol::OutputStream stream, const std::string& line) {
  if (stream == protocol::OutputStream::err) state.cause.take(line);
  if (state.last.size() == kKeptLines) state.last.pop_front();
  state.last.push_back(line.substr(0, kMaxKept));
}

std::vector<std::string> RankOutput::last_lines(Rank rank) const {
  std::vector<std::string> lines(at(rank).last.begin(), at(rank).last.end());
  if (!at(rank).unfinished.empty()) lines.push_back(at(rank).unfinished);
  return lines;
}

}  // namespace dlrun::job
