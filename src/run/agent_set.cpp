#include "src/run/agent_set.hpp"

#include "src/process/child.hpp"

namespace dlrun::job {

void AgentSet::reap_members() {
  for (AgentConnection& member : members_)
    if (member.pid && reap(*member.pid)) member.pid.reset();
}

std::vector<pid_t> AgentSet::pids() const {
  std::vector<pid_t> out;
  for (const AgentConnection& member : members_)
    if (member.pid) out.push_back(*member.pid);
  return out;
}

}  // namespace dlrun::job
