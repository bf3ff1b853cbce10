#include "src/plan/parallel_checks.hpp"

#include <algorithm>

#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

// At the first of these keys that the job sets.
tl::unexpected<Error> refuse(const JobSpec& spec, std::initializer_list<std::string_view> keys,
                             std::string what, std::string hint, ErrorKind kind = ErrorKind::input) {
  std::string where;
  for (const std::string_view key : keys)
    if (where.empty()) where = place_of(spec, key);
  return fail(
      Error{.kind = kind, .what = std::move(what), .where = std::move(where), .hint = std::move(hint)});
}

std::string names(const GroupOrder& kinds, std::string_view between = ", ") {
  std::vector<std::string> out;
  for (const GroupKind kind : kinds) out.emplace_back(name_of(kind));
  return join(out, between);
}

// "tensor 4 x pipeline 2"
std::string product_text(const ParallelSpec& spec) {
  std::vector<std::string> out;
  for (const auto& [kind, size] :
       {std::pair(GroupKind::tensor, spec.tensor), std::pair(GroupKind::context, spec.context),
        std::pair(GroupKind::pipeline, spec.pipeline)})
    if (size > 1) out.push_back(fmt::format("{} {}", name_of(kind), size));
  return join(out, " x ");
}

Result<void> check_world(const JobSpec& spec, int world) {
  const ParallelSpec& parallel = *spec.parallel;
  const int model = model_size(parallel);
  const std::string product = product_text(parallel);
  if (model > world)
    return refuse(
        spec, {"parallel"},
        fmt::format("parallel needs at least {} ranks ({}), and the job has {}", model, product, world),
        "use more nodes or tasks per node, or smaller groups", ErrorKind::allocation);
  if (world % model != 0)
    return refuse(spec, {"parallel"},
                  fmt::format("{} ranks cannot be divided into groups of {} ({})", world, model, product),
                  fmt::format("use {} or {} ranks, or other sizes", world / model * model,
                              (world / model + 1) * model));
  const int copies = world / model * parallel.context;
  if (copies % parallel.expert == 0) return {};
  return refuse(spec, {"parallel.expert"},
                fmt::format("parallel.expert is {}, which does not divide data {} x context {} = {}",
                            parallel.expert, world / model, parallel.context, copies),
                "experts are divided over the ranks that have the same tensor and pipeline rank");
}

// The kinds whose places in the order matter, in that order.
GroupOrder in_use(const GroupOrder& order, const Parallel& parallel) {
  GroupOrder out;
  for (const GroupKind kind : order) {
    const bool of_data = kind == GroupKind::data && parallel.sizes[GroupKind::expert_data] > 1 &&
                         parallel.sizes[GroupKind::expert] > 1;
    if (parallel.sizes[kind] > 1 || of_data) out.push_back(kind);
  }
  return out;
}

Result<void> check_framework(const JobSpec& spec, const Adapter& adapter, const Parallel& parallel) {
  if (!adapter.parallel) return {};
  for (const GroupKind kind :
       {GroupKind::tensor, GroupKind::context, GroupKind::expert, GroupKind::pipeline}) {
    const auto& known = adapter.parallel->groups;
    if (parallel.sizes[kind] == 1 || std::find(known.begin(), known.end(), kind) != known.end()) continue;
    return refuse(spec, {fmt::format("parallel.{}", name_of(kind))},
                  fmt::format("parallel.{} is {}, which framework {} does not support", name_of(kind),
                              parallel.sizes[kind], adapter.name),
                  known.empty() ? std::string("it supports data parallelism only: remove the key")
                                : fmt::format("it supports {} and data", names(known)));
  }
  if (parallel.sequence == SequenceParallel::on && adapter.parallel->sequence == SequenceParallel::off)
    return refuse(spec, {"parallel.sequence"},
                  fmt::format("parallel.sequence is on, which framework {} does not support", adapter.name),
                  "set parallel.sequence to off, or ask for it in the program's own way");
  const auto& orders = adapter.parallel->orders;
  const GroupOrder asked = in_use(parallel.order, parallel);
  if (orders.empty() || std::any_of(orders.begin(), orders.end(), [&](const GroupOrder& order) {
        return in_use(order, parallel) == asked;
      }))
    return {};
  std::vector<std::string> known;
  for (const GroupOrder& order : orders) known.push_back(fmt::format("[{}]", names(order)));
  return refuse(
      spec, {"parallel.order"},
      fmt::format("framework {} does not number its ranks in the order {}", adapter.name, names(asked)),
      "use parallel.order: " + join(known, " or "));
}

// "ranks 0-3 on n1, 4-5 on n2"
std::string spread_text(const std::vector<int>& group, const std::vector<NodeIndex>& node_of,
                        const Plan& plan) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end; begin < group.size(); begin = end) {
    const NodeIndex node = node_of[static_cast<std::size_t>(group[begin])];
    for (end = begin; end < group.size() && node_of[static_cast<std::size_t>(group[end])] == node;) ++end;
    std::vector<std::string> ranks;
    for (std::size_t i = begin; i < end; ++i) ranks.push_back(std::to_string(group[i]));
    const std::string text = ranks.size() > 3 ? ranks.front() + ", ..., " + ranks.back() : join(ranks, ", ");
    parts.push_back(fmt::format("{} on {}", text, plan.nodes[static_cast<std::size_t>(node.get())].host));
  }
  if (parts.size() > 3) parts = {parts[0], parts[1], "..."};
  return join(parts, "; ");
}

bool is_first(GroupKind kind, const Parallel& parallel) {
  const GroupOrder order = in_use(parallel.order, parallel);
  return !order.empty() && order.front() == kind;
}

Result<void> check_nodes(const JobSpec& spec, const Parallel& parallel, const std::vector<NodeIndex>& node_of,
                         const Plan& plan) {
  for (const GroupKind kind : spec.parallel->within_node)
    for (const std::vector<int>& group : groups(parallel, kind)) {
      const NodeIndex first = node_of[static_cast<std::size_t>(group.front())];
      if (std::all_of(group.begin(), group.end(),
                      [&](int rank) { return node_of[static_cast<std::size_t>(rank)] == first; }))
        continue;
      const std::string key = fmt::format("parallel.{}", name_of(kind));
      return refuse(spec, {"parallel.within-node", key, "parallel.order", "parallel"},
                    fmt::format("a {} group of {} ranks is not on one node: ranks {}", name_of(kind),
                                group.size(), spread_text(group, node_of, plan)),
                    fmt::format("choose a size that divides the ranks of each node,{} or leave '{}' out of "
                                "parallel.within-node ([{}])",
                                is_first(kind, parallel)
                                    ? ""
                                    : fmt::format(" put '{}' first in parallel.order,", name_of(kind)),
                                name_of(kind), names(spec.parallel->within_node)));
    }
  return {};
}

}  // namespace

Result<std::vector<NodeIndex>> nodes_of_processes(const JobSpec& spec, const Plan& plan,
                                                  const std::vector<int>& tasks) {
  std::vector<NodeIndex> out;
  if (plan.process != ProcessModel::per_rank) {
    for (std::size_t node = 0; node < tasks.size(); ++node)
      out.insert(out.end(), static_cast<std::size_t>(tasks[node]), NodeIndex(static_cast<int>(node)));
    return out;
  }
  const std::string* role = nullptr;
  for (const RankPlan& rank : plan.ranks) {
    if (rank.service) continue;
    if (role != nullptr && *role != rank.role)
      return refuse(
          spec, {"parallel"},
          fmt::format("parallel divides the ranks of one role, and the job has {} and {}", *role, rank.role),
          "remove parallel, or the role");
    role = &rank.role;
    out.push_back(rank.node);
  }
  return out;
}

Result<std::optional<Parallel>> checked_parallel(const JobSpec& spec, const Adapter& adapter,
                                                 const Plan& plan, const std::vector<int>& tasks) {
  if (!spec.parallel) return std::optional<Parallel>();
  const std::vector<NodeIndex> node_of = TRY(nodes_of_processes(spec, plan, tasks));
  TRY(check_world(spec, static_cast<int>(node_of.size())));
  Parallel out = parallel_of(*spec.parallel, static_cast<int>(node_of.size()));
  TRY(check_framework(spec, adapter, out));
  if (!experts_fit(out))
    return refuse(
        spec, {"parallel.order", "parallel"},
        fmt::format("in the order {} the experts would have other tensor or pipeline groups than the "
                    "rest of the model (data {} x context {}, expert {} x expert-data {})",
                    names(in_use(out.order, out)), out.sizes[GroupKind::data], out.sizes[GroupKind::context],
                    out.sizes[GroupKind::expert], out.sizes[GroupKind::expert_data]),
        "put tensor before, and pipeline behind, the three others: [tensor, context, expert, data, "
        "pipeline]");
  TRY(check_nodes(spec, out, node_of, plan));
  return std::optional(std::move(out));
}

}  // namespace dlrun::plan
