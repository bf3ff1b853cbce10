#include "src/cli/rank_choice.hpp"

#include <algorithm>
#include <limits>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::cli {
namespace {

constexpr int kMaxRank = std::numeric_limits<int>::max();

tl::unexpected<Error> bad(const std::string& text) {
  return fail({.kind = ErrorKind::usage,
               .what = fmt::format("--tee: '{}' does not select ranks", text),
               .hint = "write 0-3,7 for ranks, worker:0-3,7 for tasks of a role, or a role's name"});
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789-") == std::string::npos;
}

}  // namespace

Result<RankChoice> RankChoice::parse(const std::string& text) {
  RankChoice out;
  std::string role;
  for (const std::string& item : split(text, ',')) {
    std::string numbers(trim(item));
    const std::size_t colon = numbers.find(':');
    const bool names_role = colon != std::string::npos || !is_number(numbers);
    if (names_role) {
      role = numbers.substr(0, colon);
      numbers = colon == std::string::npos ? "" : numbers.substr(colon + 1);
      if (role.empty() || (colon != std::string::npos && numbers.empty())) return bad(item);
    }
    if (numbers.empty()) {
      out.parts_.push_back({role, 0, kMaxRank, item});
      continue;
    }
    const std::size_t dash = numbers.find('-');
    const auto first = parse_integer(numbers.substr(0, dash), 0, kMaxRank);
    const auto last =
        dash == std::string::npos ? first : parse_integer(numbers.substr(dash + 1), 0, kMaxRank);
    if (!first || !last || *last < *first) return bad(item);
    out.parts_.push_back({role, static_cast<int>(*first), static_cast<int>(*last), item});
  }
  return out;
}

bool RankChoice::Part::contains(const plan::RankPlan& rank) const {
  const int number = role.empty() ? rank.rank.get() : rank.task_index;
  return (role.empty() || role == rank.role) && number >= first && number <= last;
}

bool RankChoice::contains(const plan::RankPlan& rank) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) { return part.contains(rank); });
}

Result<void> RankChoice::check(const plan::Plan& plan) const {
  for (const Part& part : parts_) {
    const auto named = [&](const plan::RankPlan& rank) { return part.contains(rank); };
    if (std::none_of(plan.ranks.begin(), plan.ranks.end(), named))
      return fail({.kind = ErrorKind::usage,
                   .what = fmt::format("--tee: the job has no rank '{}'", part.text),
                   .hint = "dlrun plan shows the job's ranks and roles"});
  }
  return {};
}

}  // namespace dlrun::cli
