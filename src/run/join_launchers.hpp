// JoinLaunchers: how agents get onto nodes that join a run: a launcher each, so that one that hangs holds up
// no other. It decides nothing.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "src/launch/launcher.hpp"

namespace dlrun::job {

class JoinLaunchers {
 public:
  /// `alone`: a plan of this node only. The callbacks are called with the node's number in it, which is 0.
  Result<void> start(NodeIndex node, std::shared_ptr<const plan::Plan> alone,
                     std::unique_ptr<launch::Launcher> launcher, EventLoop& loop,
                     launch::LaunchCallbacks callbacks);
  /// nullptr where the node has begun with the run.
  const launch::Launcher* find(NodeIndex node) const;
  std::vector<pid_t> children() const;
  void child_ended();
  void stop();

 private:
  struct One {
    std::shared_ptr<const plan::Plan> plan;  // the launcher may refer to it to its end
    std::unique_ptr<launch::Launcher> launcher;
  };
  std::map<NodeIndex, One> all_;
};

}  // namespace dlrun::job
