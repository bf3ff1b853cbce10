#include "schedulers/lsf/launch.hpp"

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

Result<CommandTraits> lsf_launcher(const Environment& environment) {
  TRY(require_job(environment, "LSB_JOBID", "lsf", "LSF"));
  return CommandTraits{.name = "lsf", .commands = [environment](const AgentsToLaunch& agents) {
                         return Result<std::vector<LaunchCommand>>({lsf_command(agents, environment)});
                       }};
}

}  // namespace

LaunchCommand lsf_command(const AgentsToLaunch& agents, const Environment& environment) {
  return {.argv = with_agent({"blaunch", "-n", "-z", join(host_names(agents), " ")}, agents),
          .environment = environment,
          .nodes = all_agents(agents)};
}

PendingLauncher begin_lsf_launcher(const Environment& environment) {
  return [environment] { return lsf_launcher(environment); };
}

}  // namespace dlrun
