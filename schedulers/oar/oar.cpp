#include "schedulers/oar/oar.hpp"

#include "schedulers/node_file.hpp"

namespace dlrun {
namespace {

constexpr NodeFileVariables kOAR{
    .scheduler = "oar", .file = "OAR_NODEFILE", .job_id = "OAR_JOB_ID", .array_index = "OAR_ARRAY_INDEX"};

}  // namespace

Scheduler oar_scheduler() {
  return {.name = "oar",
          .title = "OAR",
          .detect = [](const DiscoveryContext& context) { return detect_node_file(kOAR, context); },
          .allocation = [](const DiscoveryContext& context) { return node_file_allocation(kOAR, context); },
          .slot_unit = SlotUnit::cores,
          .variables = {.prefixes = {"OAR_"}, .drop_for_submit = {"OAR_"}}};
}

}  // namespace dlrun
