#include "src/run/agent_set.hpp"

#include "src/process/child.hpp"

namespace dlrun::job {

void AgentSet::tell_all(const Message& message) {
  for (AgentConnection& member : members_)
    if (member.stream && !member.gone) member.stream->send(message);
}

void AgentSet::tell_working(const Message& message) {
  for (AgentConnection& member : members_)
    if (member.works()) member.stream->send(message);
}

void AgentSet::close_streams() {
  for (AgentConnection& member : members_)
    if (member.stream) member.stream->close();
}

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

std::vector<pid_t> AgentSet::leaving(Leaving who) const {
  std::vector<pid_t> out;
  for (const AgentConnection& member : members_)
    if (member.pid && (member.done || who == Leaving::all)) out.push_back(*member.pid);
  return out;
}

}  // namespace dlrun::job
