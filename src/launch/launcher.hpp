// Launcher: one way to get an agent onto a node. A launcher starts `dlrun agent` there and hands back both
// directions of its stream; it decides nothing about ranks. Adding one = one file here.
#pragma once

#include <memory>
#include <optional>

#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::launch {

struct AgentLink {
  UniqueFd from_agent, to_agent;
  std::optional<pid_t> pid;  // a child of ours to reap, where there is one
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual Result<AgentLink> start(const plan::Plan& plan, NodeIndex node) = 0;
};

// The way that leads to the plan's nodes; an Error that names those no way leads to.
Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const Environment& environment);

// The agent as a child of this process, on this machine.
std::unique_ptr<Launcher> make_local_launcher(Environment environment);

}  // namespace dlrun::launch
