#include "src/run/join_launchers.hpp"

#include <utility>

namespace dlrun::job {

Result<void> JoinLaunchers::start(NodeIndex node, std::shared_ptr<const plan::Plan> alone,
                                  std::unique_ptr<launch::Launcher> launcher, EventLoop& loop,
                                  launch::LaunchCallbacks callbacks) {
  One& one = all_[node];
  one.launcher.reset();  // of an earlier try; it refers to its plan
  one = {std::move(alone), std::move(launcher)};
  return one.launcher->start(*one.plan, loop, std::move(callbacks));
}

const launch::Launcher* JoinLaunchers::find(NodeIndex node) const {
  const auto found = all_.find(node);
  return found == all_.end() ? nullptr : found->second.launcher.get();
}

std::vector<pid_t> JoinLaunchers::children() const {
  std::vector<pid_t> out;
  for (const auto& [node, one] : all_)
    for (const pid_t pid : one.launcher->children()) out.push_back(pid);
  return out;
}

void JoinLaunchers::child_ended() {
  for (const auto& [node, one] : all_) one.launcher->child_ended();
}

void JoinLaunchers::stop() {
  for (const auto& [node, one] : all_) one.launcher->stop();
}

}  // namespace dlrun::job
