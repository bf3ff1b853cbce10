#include "src/cli/unfinished_lines.hpp"

#include <algorithm>

namespace dlrun::cli {

void UnfinishedLines::set(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text,
                          Ticks now) {
  const auto [found, first] =
      lines_.try_emplace({rank.rank.get(), stream}, Entry{{&rank, stream, ""}, now + kInterval});
  Entry& entry = found->second;
  if (!first && entry.line.text == text) return;
  entry.line.text = text;
  entry.is_new = true;
}

void UnfinishedLines::ended(const plan::RankPlan& rank, job::OutputStream stream) {
  lines_.erase({rank.rank.get(), stream});
}

std::optional<Ticks> UnfinishedLines::due() const {
  std::optional<Ticks> out;
  for (const auto& [key, entry] : lines_)
    if (entry.is_new) out = std::min(out.value_or(entry.due), entry.due);
  return out;
}

std::vector<UnfinishedLines::Line> UnfinishedLines::take_due(Ticks now) {
  std::vector<Line> out;
  for (auto& [key, entry] : lines_) {
    if (!entry.is_new || entry.due > now) continue;
    out.push_back(entry.line);
    entry.is_new = false;
    entry.due = now + kInterval;
  }
  return out;
}

}  // namespace dlrun::cli
