#include "schedulers/launch_command.hpp"

namespace dlrun {

std::vector<NodeIndex> all_agents(const AgentsToLaunch& agents) {
  std::vector<NodeIndex> out;
  for (std::size_t i = 0; i < agents.hosts.size(); ++i) out.emplace_back(static_cast<int>(i));
  return out;
}

std::vector<std::string> host_names(const AgentsToLaunch& agents) {
  std::vector<std::string> out;
  for (const HostName& host : agents.hosts) out.push_back(host.get());
  return out;
}

Argv with_agent(Argv words, const AgentsToLaunch& agents) {
  words.insert(words.end(), agents.agent.begin(), agents.agent.end());
  return words;
}

Result<void> require_job(const Environment& environment, std::string_view variable, std::string_view launcher,
                         std::string_view scheduler) {
  if (environment.find(variable)) return {};
  return fail({.kind = ErrorKind::unavailable,
               .what = fmt::format("launch.via: {} works only inside a {} job ({} is not set)", launcher,
                                   scheduler, variable),
               .hint = "run it inside such a job, or reach the nodes with --via ssh"});
}

}  // namespace dlrun
