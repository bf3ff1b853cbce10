#include "src/run/rank_output.hpp"

#include <utility>

#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kKeptLines = 12, kMaxKept = 400;
constexpr std::size_t kNeverCut = 300;  // bytes of a line; of a longer one, half of a secret might be kept

}  // namespace

void RankOutput::take(Rank rank, OutputStream stream, const std::string& text) {
  const auto number = static_cast<std::size_t>(rank.get());
  std::deque<std::string>& last = last_[number];
  std::vector<std::string> lines = split(text, '\n');
  lines.pop_back();  // behind the last newline
  for (std::string& line : lines) {
    if (is_shown(rank)) status_.output(shown_.ranks[number], stream, line);
    if (line.size() > kNeverCut) line = secrets_.hidden(std::move(line));
    if (stream == OutputStream::err) causes_[number].take(line);
    if (last.size() == kKeptLines) last.pop_front();
    last.push_back(line.substr(0, kMaxKept));
  }
  unfinished_[number].clear();
  flush_in_time();
}

void RankOutput::take_unfinished(Rank rank, OutputStream stream, const std::string& text) {
  const auto number = static_cast<std::size_t>(rank.get());
  unfinished_[number] = secrets_.hidden(text).substr(0, kMaxKept);
  if (is_shown(rank)) status_.unfinished(shown_.ranks[number], stream, text);
  flush_in_time();
}

void RankOutput::flush_in_time() {
  const auto due = status_.lines_due();
  if (!due || std::exchange(flush_pending_, true)) return;
  loop_.after(*due - std::chrono::steady_clock::now(), [this] {
    flush_pending_ = false;
    status_.flush_lines(std::chrono::steady_clock::now());
    flush_in_time();
  });
}

std::vector<std::string> RankOutput::last_lines(Rank rank) const {
  const auto number = static_cast<std::size_t>(rank.get());
  std::vector<std::string> lines(last_[number].begin(), last_[number].end());
  if (!unfinished_[number].empty()) lines.push_back(unfinished_[number]);
  return lines;
}

}  // namespace dlrun::job
