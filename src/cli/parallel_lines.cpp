#include "src/cli/parallel_lines.hpp"

#include <algorithm>
#include <set>

#include "src/base/strings.hpp"
#include "src/plan/role_tasks.hpp"

namespace dlrun::cli {
namespace {

using plan::GroupKind;
using plan::Parallel;

constexpr std::size_t kMaxGroups = 8, kMaxRanks = 4;

// In the order of the ranks; the experts' two kinds stand where the order has them, one after the other.
std::vector<GroupKind> kinds_in_use(const Parallel& parallel) {
  std::vector<GroupKind> out;
  for (const GroupKind kind : parallel.order)
    if (parallel.sizes[kind] > 1) out.push_back(kind);
  if (parallel.sizes[GroupKind::expert] > 1 && parallel.sizes[GroupKind::expert_data] > 1)
    out.push_back(GroupKind::expert_data);
  return out;
}

// "tensor 2 x data 4 x pipeline 2"
std::string sizes_text(const Parallel& parallel) {
  std::vector<std::string> out;
  for (const GroupKind kind : parallel.order)
    if (kind != GroupKind::expert && (parallel.sizes[kind] > 1 || kind == GroupKind::data))
      out.push_back(fmt::format("{} {}", plan::name_of(kind), parallel.sizes[kind]));
  std::string text = join(out, " x ");
  if (parallel.sizes[GroupKind::expert] > 1)
    text += fmt::format("; experts: expert {} x expert-data {}", parallel.sizes[GroupKind::expert],
                        parallel.sizes[GroupKind::expert_data]);
  return text;
}

// "0-3" where they stand together, else "0,4,8"
std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() > 1 && ranks.back() - ranks.front() + 1 == static_cast<int>(ranks.size()))
    return fmt::format("{}-{}", ranks.front(), ranks.back());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const bool shown = ranks.size() <= kMaxRanks || i < kMaxRanks - 2 || i + 1 == ranks.size();
    if (shown) out.push_back(std::to_string(ranks[i]));
    if (!shown && i + 2 == ranks.size()) out.emplace_back("...");
  }
  return join(out, ",");
}

// Whether all groups are on one node each; the framework's own processes are not in the plan.
std::string nodes_text(const plan::Plan& plan, const std::vector<std::vector<int>>& groups) {
  if (plan.process != plan::ProcessModel::per_rank || plan.nodes.size() == 1) return "";
  std::vector<NodeIndex> node_of;
  for (const plan::RankPlan& rank : plan.ranks)
    if (rank.group_ranks) node_of.push_back(rank.node);
  const bool together = std::all_of(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
    std::set<NodeIndex> nodes;
    for (const int rank : group) nodes.insert(node_of.at(static_cast<std::size_t>(rank)));
    return nodes.size() == 1;
  });
  return together ? " on one node" : " across nodes";
}

std::string line_of(const plan::Plan& plan, GroupKind kind) {
  const std::vector<std::vector<int>> all = plan::groups(*plan.parallel, kind);
  std::string out =
      fmt::format("{:<10} {} of {}{}:", plan::name_of(kind), plan::count_text(all.size(), "group"),
                  plan::count_text(all.front().size(), "rank"), nodes_text(plan, all));
  for (std::size_t i = 0; i < std::min(all.size(), kMaxGroups); ++i) out += "  " + ranks_text(all[i]);
  return all.size() > kMaxGroups ? out + "  ..." : out;
}

}  // namespace

std::vector<std::string> parallel_lines(const plan::Plan& plan) {
  std::vector<std::string> out;
  if (!plan.parallel) return out;
  out.push_back(fmt::format("{:<10} {} (the first varies fastest)", "parallel", sizes_text(*plan.parallel)));
  for (const GroupKind kind : kinds_in_use(*plan.parallel)) out.push_back(line_of(plan, kind));
  return out;
}

std::string group_ranks_text(const plan::Plan& plan, const plan::RankPlan& rank) {
  if (!plan.parallel || !rank.group_ranks) return "-";
  std::vector<std::string> out;
  for (const GroupKind kind : kinds_in_use(*plan.parallel))
    if (kind != GroupKind::expert_data)
      out.push_back(fmt::format("{}{}", plan::name_of(kind).front(), (*rank.group_ranks)[kind]));
  return join(out, " ");
}

}  // namespace dlrun::cli
