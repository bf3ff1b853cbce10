#include "src/run/kept_agents.hpp"

#include <set>
#include <utility>

#include <poll.h>

#include "src/process/child.hpp"
#include "src/process/descendants.hpp"
#include "src/run/leftovers.hpp"

namespace dlrun::job {
namespace {

// Whatever is still to be read.
bool is_lost(const KeptAgent& agent) {
  pollfd in{.fd = agent.stream->fd(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&in, 1, 0) > 0 && in.revents != 0;
}

}  // namespace

std::optional<KeptAgent> KeptAgents::take(const std::string& host) {
  auto node = agents_.extract(host);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

std::vector<pid_t> KeptAgents::processes() const {
  std::vector<pid_t> out;
  for (const auto& [host, agent] : agents_) {
    if (agent.pid) out.push_back(*agent.pid);
    for (const pid_t pid : agent.origin.launcher->children()) out.push_back(pid);
  }
  return out;
}

void KeptAgents::forget_lost() {
  std::set<std::string> lost;
  std::set<const launch::Launcher*> ending;
  for (const auto& [host, agent] : agents_) {
    if (!is_lost(agent)) continue;
    lost.insert(host);
    if (agent.origin.launcher->shares_fate()) ending.insert(agent.origin.launcher.get());
  }
  std::erase_if(agents_, [&](const auto& one) {
    return lost.contains(one.first) || ending.contains(one.second.origin.launcher.get());
  });
}

void KeptAgents::dismiss() {
  if (agents_.empty()) return;
  Leftovers leftovers;
  leftovers.spare(descendants(processes()));  // what else is below us is not ours to end
  EventLoop loop;
  Launchers launchers;
  int number = 0;
  for (auto& [host, agent] : agents_) {
    agent.stream.reset();
    agent.origin.launcher->join_loop(loop, {[](NodeIndex, launch::AgentLink) {},
                                            [](NodeIndex, const Error&) {}, [](const std::string&) {}});
    launchers.set(NodeIndex(number++), agent.origin);
  }
  const auto reap_ended = [&] {
    launchers.child_ended();
    for (auto& [host, agent] : agents_)
      if (agent.pid && reap(*agent.pid)) agent.pid.reset();
  };
  (void)leftovers.end({.reap = reap_ended,
                       .leaving = [this] { return processes(); },
                       .stop_launcher = [&] { launchers.stop(); }});
  for (const auto& [host, agent] : agents_) agent.origin.launcher->leave_loop();
  agents_.clear();
}

}  // namespace dlrun::job
