#include "src/launch/command_traits.hpp"

#include "src/process/child.hpp"

namespace dlrun::launch {

std::vector<NodeIndex> all_nodes(const plan::Plan& plan) {
  std::vector<NodeIndex> out;
  for (const plan::NodePlan& node : plan.nodes) out.push_back(node.index);
  return out;
}

std::vector<std::string> all_hosts(const plan::Plan& plan) {
  std::vector<std::string> out;
  for (const plan::NodePlan& node : plan.nodes) out.push_back(node.host.get());
  return out;
}

MpiFlavour flavour_of(const plan::Plan& plan, const Environment& environment) {
  if (plan.ranks.empty() || plan.ranks.front().argv.empty()) return MpiFlavour::unknown;
  const auto program = find_program(plan.ranks.front().argv.front(), environment, plan.working_directory);
  return program ? mpi_flavour(*program, environment).value_or(MpiFlavour::unknown) : MpiFlavour::unknown;
}

Argv with_agent(Argv words, const AgentCommand& agent) {
  words.insert(words.end(), agent.argv.begin(), agent.argv.end());
  return words;
}

Result<void> need_job(const Environment& environment, std::string_view variable, std::string_view way,
                      std::string_view scheduler) {
  if (environment.find(variable)) return {};
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("launch.via: {} needs a {} job to stand in, and {} is not set", way,
                                   scheduler, variable),
               .hint = "run it inside such a job, or reach the nodes with --via ssh"});
}

}  // namespace dlrun::launch
