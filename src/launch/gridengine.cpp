// The sge way: `qrsh -inherit` starts one agent on each node of a Grid Engine parallel job that we stand in,
// as a task of the job where the parallel environment controls its slaves. The one on our own node needs no
// qrsh, and may not get it: where the job itself counts as its first task, no slot may be left for another.
#include "schedulers/node_identity.hpp"
#include "src/base/quote.hpp"
#include "src/launch/command_traits.hpp"

namespace dlrun::launch {

std::vector<EngineCommand> sge_commands(const plan::Plan& plan, const AgentCommand& agent,
                                        const Environment& environment, const MachineNames& here) {
  AgentCommand there = agent;  // qrsh joins the words by blanks, and a shell of the node takes them apart
  for (std::string& word : there.argv) word = shell_quote(word);
  std::vector<EngineCommand> out;
  for (const plan::NodePlan& node : plan.nodes) {
    const std::string& host = node.host.get();
    out.push_back({.argv = is_machine(host, here) ? agent.argv
                                                  : with_agent({"qrsh", "-inherit", "-nostdin", host}, there),
                   .environment = environment,
                   .nodes = {node.index}});
  }
  return out;
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
