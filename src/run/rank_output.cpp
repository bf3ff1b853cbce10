#include "src/run/rank_output.hpp"

#include <algorithm>
#include <utility>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kKeptLines = 12, kMaxKept = 400;  // bytes of a line
constexpr std::size_t kKeptOfAll = std::size_t{64} << 20, kMinOfOne = 2 * kMaxKept;
constexpr std::size_t kNeverCut = 300;  // bytes of a line; of a longer one, half of a secret might be kept

// The oldest lines go first.
void cut_to(std::string& lines, std::size_t maximum) {
  std::size_t begin = 0;
  auto count = static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
  while (begin < lines.size() && (count > kKeptLines || lines.size() - begin > maximum)) {
    begin = lines.find('\n', begin) + 1;
    --count;
  }
  lines.erase(0, begin);
}

}  // namespace

RankOutput::RankOutput(std::size_t ranks, const plan::SecretValues& secrets)
    : secrets_(secrets),
      ranks_(ranks),
      max_kept_(std::max(kMinOfOne, kKeptOfAll / std::max<std::size_t>(ranks, 1))) {}

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

void RankOutput::keep(State& state, protocol::OutputStream stream, const std::string& line) const {
  if (stream == protocol::OutputStream::err) state.cause.take(line);
  state.last.append(line, 0, kMaxKept).push_back('\n');
  cut_to(state.last, max_kept_);
}

std::vector<std::string> RankOutput::last_lines(Rank rank) const {
  std::vector<std::string> lines = split(at(rank).last, '\n');
  lines.pop_back();  // behind the last newline
  if (!at(rank).unfinished.empty()) lines.push_back(at(rank).unfinished);
  return lines;
}

}  // namespace dlrun::job
