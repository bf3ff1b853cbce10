#include "schedulers/cobalt/cobalt.hpp"

#include "schedulers/node_file.hpp"

namespace dlrun {
namespace {

constexpr NodeFileVariables kCobalt{
    .scheduler = "cobalt", .file = "COBALT_NODEFILE", .job_id = "COBALT_JOBID", .array_index = ""};

}  // namespace

Scheduler cobalt_scheduler() {
  return {
      .name = "cobalt",
      .title = "Cobalt",
      .detect = [](const DiscoveryContext& context) { return detect_node_file(kCobalt, context); },
      .allocation = [](const DiscoveryContext& context) { return node_file_allocation(kCobalt, context); },
      .variables = {.prefixes = {"COBALT_"}, .drop_for_submit = {"COBALT_"}}};
}

}  // namespace dlrun
