// The sge way: `qrsh -inherit` starts one agent on each node of a Grid Engine parallel job that we stand in,
// as a task of the job where the parallel environment controls its slaves.
#include "src/launch/engines.hpp"

namespace dlrun::launch {

std::vector<EngineCommand> sge_commands(const plan::Plan& plan, const AgentCommand& agent,
                                        const Environment& environment) {
  return one_command_a_node(plan, agent, environment, [](const std::string& host) {
    return Argv{"qrsh", "-inherit", "-nostdin", host};
  });
}

Result<std::unique_ptr<Launcher>> make_sge_launcher(const LaunchSettings& settings) {
  TRY(need_job(settings.environment, "PE_HOSTFILE", "sge", "Grid Engine parallel"));
  return make_engine_launcher(
      {.name = "sge", .token = TokenBy::file}, settings,
      [environment = settings.environment](const plan::Plan& plan, const AgentCommand& agent) {
        return Result<std::vector<EngineCommand>>(sge_commands(plan, agent, environment));
      });
}

}  // namespace dlrun::launch
