#include "src/cli/line_folder.hpp"

#include <algorithm>

#include "src/base/strings.hpp"

namespace dlrun::cli {
namespace {

constexpr std::chrono::milliseconds kWindow{80};
constexpr std::size_t kMaxGroups = 2000, kMaxBytes = std::size_t{1} << 20;

std::string key_of(job::OutputStream stream, const std::string& role, std::string_view text) {
  std::string key = stream == job::OutputStream::out ? "o" : "e";
  return key.append(role).append(1, '\0').append(text);
}

}  // namespace

std::string task_ranges(const std::vector<const plan::RankPlan*>& ranks) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end]->task_index == ranks[end - 1]->task_index + 1) ++end;
    const int first = ranks[i]->task_index, last = ranks[end - 1]->task_index;
    out.push_back(first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
    i = end;
  }
  return join(out, ",");
}

void LineFolder::expect(const plan::Plan& plan) {
  expected_.clear();
  for (const plan::RankPlan& rank : plan.ranks) ++expected_[rank.role];
}

// A rank joins a group only behind the last one that has a line of it, or its own lines would change places.
void LineFolder::add(const plan::RankPlan& rank, job::OutputStream stream, std::string_view text, Ticks now) {
  const std::string key = key_of(stream, rank.role, text);
  std::uint64_t& next_of_rank = last_of_rank_[rank.rank.get()];
  std::deque<std::uint64_t>& known = known_[key];
  const auto joined = std::lower_bound(known.begin(), known.end(), next_of_rank);
  if (joined != known.end()) {
    groups_[*joined - first_number_].line.ranks.push_back(&rank);
    next_of_rank = *joined + 1;
  } else {
    const std::uint64_t number = first_number_ + groups_.size();
    groups_.push_back({{stream, rank.role, {&rank}, std::string(text)}, now + kWindow});
    known.push_back(number);
    next_of_rank = number + 1;
    bytes_ += text.size();
  }
  while (groups_.size() > kMaxGroups || bytes_ > kMaxBytes) emit_first();
  flush_due(now);
}

bool LineFolder::complete(const Group& group) const {
  const auto expected = expected_.find(group.line.role);
  return expected != expected_.end() && group.line.ranks.size() >= expected->second;
}

void LineFolder::emit_first() {
  Group group = std::move(groups_.front());
  groups_.pop_front();
  const auto known = known_.find(key_of(group.line.stream, group.line.role, group.line.text));
  known->second.pop_front();  // groups go in the order in which they came
  if (known->second.empty()) known_.erase(known);
  ++first_number_;
  bytes_ -= group.line.text.size();
  std::sort(group.line.ranks.begin(), group.line.ranks.end(),
            [](const plan::RankPlan* a, const plan::RankPlan* b) { return a->task_index < b->task_index; });
  emit_(group.line);
}

void LineFolder::flush_due(Ticks now) {
  while (!groups_.empty() && (groups_.front().due <= now || complete(groups_.front()))) emit_first();
}

void LineFolder::flush() {
  while (!groups_.empty()) emit_first();
}

std::optional<Ticks> LineFolder::due() const {
  return groups_.empty() ? std::nullopt : std::optional(groups_.front().due);
}

}  // namespace dlrun::cli
