// The sge way: `qrsh -inherit` starts one agent on each node of a Grid Engine parallel job that we stand in,
// as a task of the job where the parallel environment controls its slaves. The one on our own node needs no
// qrsh, and may not get it: where the job itself counts as its first task, no slot may be left for another.
#include "schedulers/node_identity.hpp"
#include "src/launch/engines.hpp"

namespace dlrun::launch {

std::vector<EngineCommand> sge_commands(const plan::Plan& plan, const AgentCommand& agent,
                                        const Environment& environment, const MachineNames& here) {
  return one_command_a_node(plan, agent, environment, [&](const std::string& host) {
    return is_machine(host, here) ? Argv{} : Argv{"qrsh", "-inherit", "-nostdin", host};
  });
}

Result<std::unique_ptr<Launcher>> make_sge_launcher(const LaunchSettings& settings) {
  TRY(need_job(settings.environment, "PE_HOSTFILE", "sge", "Grid Engine parallel"));
  return make_engine_launcher(
      {.name = "sge",
       .hints =
           {{"didn't accept task",
             "tasks on nodes need control_slaves TRUE in the job's parallel environment (qconf -sp NAME); "
             "--via ssh needs none"}}},
      settings, [environment = settings.environment](const plan::Plan& plan, const AgentCommand& agent) {
        return Result<std::vector<EngineCommand>>(sge_commands(plan, agent, environment, this_machine()));
      });
}

}  // namespace dlrun::launch
