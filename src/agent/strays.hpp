// Strays: ends every process that is still below us once the ranks are gone: daemons, data loaders in
// sessions of their own, children of ranks that were killed. TERM first, KILL after a short while, until none
// is left.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "src/process/event_loop.hpp"

namespace dlrun::agent {

class Strays {
 public:
  // `gone` is called once, with the pids that had to be ended.
  Strays(EventLoop& loop, std::function<void(const std::vector<pid_t>&)> gone)
      : loop_(loop), gone_(std::move(gone)) {}
  void begin();
  void child_ended();  // a hint that it is worth checking again

 private:
  void check();
  EventLoop& loop_;
  std::function<void(const std::vector<pid_t>&)> gone_;
  std::vector<pid_t> seen_;
  Ticks kill_from_{};
  std::optional<EventLoop::TimerId> next_check_;
  bool finished_ = false;
};

}  // namespace dlrun::agent
