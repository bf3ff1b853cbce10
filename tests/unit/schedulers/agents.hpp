// Agents to launch, for the tests of the schedulers' launchers.
#pragma once

#include "schedulers/launch_command.hpp"

namespace dlrun::test {

inline AgentsToLaunch agents_on(const std::vector<std::string>& hosts, Argv agent) {
  AgentsToLaunch out{.hosts = {}, .agent = std::move(agent)};
  for (const std::string& host : hosts) out.hosts.emplace_back(host);
  return out;
}

}  // namespace dlrun::test
