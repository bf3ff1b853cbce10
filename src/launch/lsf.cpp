// The lsf way: one blaunch starts an agent on each host of the LSF job that we stand in, as tasks of the job.
#include "src/base/strings.hpp"
#include "src/launch/command_traits.hpp"

namespace dlrun::launch {

EngineCommand lsf_command(const plan::Plan& plan, const AgentCommand& agent, const Environment& environment) {
  return {.argv = with_agent({"blaunch", "-n", "-z", join(all_hosts(plan), " ")}, agent),
          .environment = environment,
          .nodes = all_nodes(plan)};
}

Result<std::unique_ptr<Launcher>> make_lsf_launcher(const LaunchSettings& settings) {
  TRY(need_job(settings.environment, "LSB_JOBID", "lsf", "LSF"));
  return make_engine_launcher(
      {.name = "lsf"}, settings,
      [environment = settings.environment](const plan::Plan& plan, const AgentCommand& agent) {
        return Result<std::vector<EngineCommand>>({lsf_command(plan, agent, environment)});
      });
}

}  // namespace dlrun::launch
