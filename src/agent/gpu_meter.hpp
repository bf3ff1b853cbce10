// GpuMeter: how busy the GPUs of this node's ranks are, their memory, and the joules that they have used
// since begin(), as NVML counts them. The driver is asked on a thread of its own, since it may answer late;
// what it said last is told. Nothing is asked where the job does not mention GPUs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/gpus/nvml.hpp"
#include "src/base/json.hpp"
#include "src/process/aside.hpp"

namespace dlrun::agent {

/// Pure: the members of a node's usage that are of GPUs. `now` and `first`: of the same GPUs.
Json gpu_usage_of(const std::vector<GpuState>& first, const std::vector<GpuState>& now);

class GpuMeter {
 public:
  explicit GpuMeter(EventLoop& loop) : loop_(loop) {}

  /// The GPUs by the names that the plan gives them; from here on.
  void begin(std::vector<std::string> names);
  /// Asks the driver again; its answer is in the next usage().
  void ask();
  /// {"gpu": .., "gpu_memory_used": .., "gpu_joules": .., "gpu_why": ..}; empty where there is no GPU.
  const Json& usage() const { return usage_; }

 private:
  void on_answer(const Result<std::vector<GpuState>>& states);

  EventLoop& loop_;
  std::vector<std::string> names_;
  std::shared_ptr<NvmlSession> session_;
  std::unique_ptr<Aside<Result<std::vector<GpuState>>>> asking_;
  std::optional<std::vector<GpuState>> first_;
  Json usage_ = {{"gpu_why", "the job asks for no GPU"}};
};

}  // namespace dlrun::agent
