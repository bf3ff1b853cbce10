#include "src/job/crew.hpp"

#include "src/process/child.hpp"

namespace dlrun::job {

void Crew::tell_all(const Message& message) {
  for (CrewMember& member : members_)
    if (member.stream && !member.gone) member.stream->send(message);
}

void Crew::tell_working(const Message& message) {
  for (CrewMember& member : members_)
    if (member.works()) member.stream->send(message);
}

void Crew::close_streams() {
  for (CrewMember& member : members_)
    if (member.stream) member.stream->close();
}

void Crew::reap_members() {
  for (CrewMember& member : members_)
    if (member.pid && reap(*member.pid)) member.pid.reset();
}

std::vector<pid_t> Crew::pids() const {
  std::vector<pid_t> out;
  for (const CrewMember& member : members_)
    if (member.pid) out.push_back(*member.pid);
  return out;
}

std::vector<pid_t> Crew::leaving(Leaving who) const {
  std::vector<pid_t> out;
  for (const CrewMember& member : members_)
    if (member.pid && (member.done || who == Leaving::all)) out.push_back(*member.pid);
  return out;
}

}  // namespace dlrun::job
