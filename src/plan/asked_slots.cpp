#include "src/plan/asked_slots.hpp"

#include <algorithm>

#include "src/plan/role_tasks.hpp"

namespace dlrun::plan {

bool slots_were_asked_for(const std::vector<AllocatedNode>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const AllocatedNode& node) { return node.asked_slots.value_or(1) > 1; });
}

bool leaves_tasks_to_slots(const Resources& resources) {
  return !resources.tasks_per_node && resources.gpus_per_node.value_or(0) == 0;
}

Result<void> check_asked_slots(const JobSpec& spec, const std::vector<AllocatedNode>& nodes,
                               SlotDivision division) {
  if (!spec.resources.tasks_per_node || !slots_were_asked_for(nodes)) return {};
  int total = 0;
  for (const AllocatedNode& node : nodes) total += node.asked_slots.value_or(0);
  const bool enough = total >= *spec.resources.tasks_per_node * static_cast<int>(nodes.size());
  if (division == SlotDivision::by_scheduler && enough) return {};
  Error error{.kind = ErrorKind::allocation,
              .what = {},
              .where = place_of(spec, "resources.tasks-per-node"),
              .hint = "remove tasks-per-node to get one rank per slot, or request more slots",
              .also = {}};
  for (const AllocatedNode& node : nodes)
    if (node.asked_slots && *node.asked_slots < *spec.resources.tasks_per_node)
      error.also.push_back(fmt::format("{} has {}", node.host,
                                       count_text(static_cast<std::size_t>(*node.asked_slots), "slot")));
  if (error.also.empty()) return {};
  error.what = fmt::format("the job asks for {} per node, but fewer slots were requested on {} of {}",
                           count_text(static_cast<std::size_t>(*spec.resources.tasks_per_node), "task"),
                           error.also.size(), count_text(nodes.size(), "node"));
  return fail(std::move(error));
}

}  // namespace dlrun::plan
