// The commands of ways that are a site's own programs, as pure functions of the plan and of what is known
// about the program: one file each, so that they can be tested without a cluster. (Slurm's are in slurm.hpp.)
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/node_identity.hpp"
#include "src/launch/command_launcher.hpp"
#include "src/process/mpi_flavour.hpp"

namespace dlrun::launch {

// MPICH's and Intel's mpiexec, or Open MPI's mpirun: they start programs that are no MPI programs as well.
enum class Mpiexec { hydra, open_mpi };
// From what `mpiexec --version` says.
std::optional<Mpiexec> parse_mpiexec_version(std::string_view text);
EngineCommand mpiexec_command(const plan::Plan& plan, const AgentCommand& agent, Mpiexec flavour,
                              const Environment& environment);

// OpenPBS has pbs_tmrsh HOST, Torque pbsdsh -h HOST: the host as the node file spells it.
enum class PbsStarter { pbs_tmrsh, pbsdsh };
std::vector<EngineCommand> pbs_commands(const plan::Plan& plan, const AgentCommand& agent, PbsStarter starter,
                                        const Environment& environment);

// `here`: the machine we are on, whose agent is started without Grid Engine.
std::vector<EngineCommand> sge_commands(const plan::Plan& plan, const AgentCommand& agent,
                                        const Environment& environment, const MachineNames& here);

EngineCommand lsf_command(const plan::Plan& plan, const AgentCommand& agent, const Environment& environment);

// `brokers` are the hosts of the instance, by broker rank. An Error names hosts that are none of them.
Result<EngineCommand> flux_command(const plan::Plan& plan, const AgentCommand& agent,
                                   const std::vector<HostName>& brokers, const Environment& environment);

// Helpers of theirs.
// What the plan's program links; unknown where it is not here.
MpiFlavour flavour_of(const plan::Plan& plan, const Environment& environment);
std::vector<NodeIndex> all_nodes(const plan::Plan& plan);
std::vector<std::string> all_hosts(const plan::Plan& plan);
// `words` and then the agent's.
Argv with_agent(Argv words, const AgentCommand& agent);
// One command a node, by `words_for(host)`.
template <class WordsFor>
std::vector<EngineCommand> one_command_per_node(const plan::Plan& plan, const AgentCommand& agent,
                                                const Environment& environment, WordsFor words_for) {
  std::vector<EngineCommand> out;
  for (const plan::NodePlan& node : plan.nodes)
    out.push_back({.argv = with_agent(words_for(node.host.get()), agent),
                   .environment = environment,
                   .nodes = {node.index}});
  return out;
}
// An Error where `variable` is not set: there is no job of `scheduler` to stand in.
Result<void> need_job(const Environment& environment, std::string_view variable, std::string_view way,
                      std::string_view scheduler);

}  // namespace dlrun::launch
