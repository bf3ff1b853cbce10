#include "src/run/launchers.hpp"

#include <set>
#include <utility>

namespace dlrun::job {

void Launchers::set(NodeIndex node, AgentOrigin origin) {
  of_.insert_or_assign(node, std::move(origin));
}

const AgentOrigin* Launchers::find(NodeIndex node) const {
  const auto found = of_.find(node);
  return found == of_.end() ? nullptr : &found->second;
}

void Launchers::release(const launch::Launcher* launcher) {
  std::erase_if(of_, [&](const auto& one) { return one.second.launcher.get() == launcher; });
}

std::vector<launch::Launcher*> Launchers::all() const {
  std::vector<launch::Launcher*> out;
  std::set<const launch::Launcher*> seen;
  for (const auto& [node, origin] : of_)
    if (seen.insert(origin.launcher.get()).second) out.push_back(origin.launcher.get());
  return out;
}

std::vector<pid_t> Launchers::children() const {
  std::vector<pid_t> out;
  for (const launch::Launcher* launcher : all())
    for (const pid_t pid : launcher->children()) out.push_back(pid);
  return out;
}

void Launchers::child_ended() {
  for (launch::Launcher* launcher : all()) launcher->child_ended();
}

void Launchers::stop() {
  for (launch::Launcher* launcher : all()) launcher->stop();
}

}  // namespace dlrun::job
