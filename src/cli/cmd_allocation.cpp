// dlrun allocation: the nodes we may use, from which source, and why.
#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/cli/commands.hpp"

namespace dlrun::cli {

Result<int> show_allocation(const AllocationOptions& options, const Context& context) {
  const SystemCommands commands;
  const SystemClock clock;
  const Surroundings surroundings{context.environment, commands, clock, gpus_of_driver};
  const Allocation allocation = TRY(find_allocation(surroundings, options.scheduler));
  if (context.common.json) {
    TRY(context.console.data(to_pretty_text(to_json(allocation))));
    return 0;
  }
  Console& console = context.console;
  console.out(fmt::format("scheduler  {}{}", allocation.scheduler,
                          allocation.job_id ? ", job " + *allocation.job_id : ""));
  console.out(
      fmt::format("end time   {}", allocation.end_time ? format_utc(*allocation.end_time) : "no limit"));
  for (const AllocatedNode& node : allocation.nodes)
    console.out(fmt::format("node       {}: {} slots, {} cpus, GPUs {}", node.host, node.slots,
                            node.cpus ? std::to_string(*node.cpus) : "unknown",
                            !node.gpus           ? "unknown"
                            : node.gpus->empty() ? "none"
                                                 : join(*node.gpus, ",")));
  for (const std::string& line : allocation.evidence) console.out("evidence   " + line);
  return 0;
}

}  // namespace dlrun::cli
