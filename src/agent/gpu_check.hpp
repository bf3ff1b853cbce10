// GpuCheck: some seconds after a node's ranks have started it asks the driver who holds which GPU, and again
// with growing pauses until every rank that has GPUs was seen to hold one. What it finds is told once as it
// changes. It stops nobody. The driver is asked on a thread of its own, since it may answer late.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/agent/gpu_holders.hpp"
#include "src/process/aside.hpp"

namespace dlrun::agent {

class GpuCheck {
 public:
  struct Callbacks {
    std::function<std::vector<RankProcesses>()> ranks;  // those that run
    std::function<void(const Json&)> found;             // who holds what
    std::function<void(const std::string&)> warn;
  };
  GpuCheck(EventLoop& loop, Callbacks callbacks) : loop_(loop), callbacks_(std::move(callbacks)) {}

  // For ranks that have just been started. Has no effect where the job does not mention GPUs.
  void begin();
  // Now: somebody wants to know.
  void check();

 private:
  bool concerns_us() const;
  void check_after(Seconds pause);
  void on_answer(const Result<GpuUse>& use);

  EventLoop& loop_;
  Callbacks callbacks_;
  std::unique_ptr<Aside<Result<GpuUse>>> asking_;
  Seconds pause_{0};
  int checks_ = 0;
  std::string told_;  // what was found last, as text
};

}  // namespace dlrun::agent
