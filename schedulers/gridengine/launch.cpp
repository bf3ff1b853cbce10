// `qrsh -inherit` starts one agent on each node of the Grid Engine parallel job that we are in, as a task of
// the job where the parallel environment controls its slaves. The agent on our own node needs no qrsh, and
// may not get it: where the job itself counts as its first task, no slot may be left for another.
#include "schedulers/gridengine/launch.hpp"

#include "src/base/quote.hpp"

namespace dlrun {
namespace {

Result<CommandTraits> gridengine_launcher(const Environment& environment) {
  TRY(require_job(environment, "PE_HOSTFILE", "gridengine", "Grid Engine parallel"));
  return CommandTraits{
      .name = "gridengine",
      .commands =
          [environment](const AgentsToLaunch& agents) {
            return Result<std::vector<LaunchCommand>>(
                gridengine_commands(agents, environment, this_machine()));
          },
      .hints = {
          {"didn't accept task",
           "tasks on nodes need control_slaves TRUE in the job's parallel environment (qconf -sp NAME); "
           "--via ssh needs none"}}};
}

}  // namespace

std::vector<LaunchCommand> gridengine_commands(const AgentsToLaunch& agents, const Environment& environment,
                                               const MachineNames& here) {
  AgentsToLaunch quoted = agents;  // qrsh joins the words by blanks, and a shell of the node splits them
  for (std::string& word : quoted.agent) word = shell_quote(word);
  std::vector<LaunchCommand> out = one_command_per_node(quoted, environment, [](const std::string& host) {
    return Argv{"qrsh", "-inherit", "-nostdin", host};
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (is_machine(agents.hosts[i].get(), here)) out[i].argv = agents.agent;
  return out;
}

PendingLauncher begin_gridengine_launcher(const Environment& environment) {
  return [environment] { return gridengine_launcher(environment); };
}

}  // namespace dlrun
