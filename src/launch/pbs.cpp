// The pbs way: PBS's task manager starts one agent on each node of the job that we stand in, and ends it with
// the job. Its tasks have no standard input, and their output is the job's own.
#include "src/launch/engines.hpp"
#include "src/process/command.hpp"

namespace dlrun::launch {

std::vector<EngineCommand> pbs_commands(const plan::Plan& plan, const AgentCommand& agent, PbsStarter starter,
                                        const Environment& environment) {
  return one_command_a_node(plan, agent, environment, [&](const std::string& host) {
    return starter == PbsStarter::pbs_tmrsh ? Argv{"pbs_tmrsh", host} : Argv{"pbsdsh", "-h", host};
  });
}

Result<std::unique_ptr<Launcher>> make_pbs_launcher(const LaunchSettings& settings) {
  TRY(need_job(settings.environment, "PBS_JOBID", "pbs", "PBS"));
  // Both end at once without arguments; only one that is not there is an Error.
  const auto tmrsh =
      run_command({.argv = {"pbs_tmrsh"}, .environment = settings.environment, .limit = Seconds(20)});
  const PbsStarter starter = tmrsh ? PbsStarter::pbs_tmrsh : PbsStarter::pbsdsh;
  return make_engine_launcher(
      {.name = "pbs"}, settings,
      [starter, environment = settings.environment](const plan::Plan& plan, const AgentCommand& agent) {
        return Result<std::vector<EngineCommand>>(pbs_commands(plan, agent, starter, environment));
      });
}

}  // namespace dlrun::launch
