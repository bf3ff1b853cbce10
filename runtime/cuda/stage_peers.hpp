// StagePeers: what the plug-in asks of the stages beside a GPU's, as messages of a DevicePipeline. Gradients
// go in their turn (GradientTurns); those of parameters that the first and the last stage both have are added
// on the first one, summed over the data group there, and sent back, as in runtime/train/stage_agreement.hpp.
// It computes nothing else, and includes no CUDA.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/engine/device_calls.hpp"
#include "runtime/engine/device_pipeline.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

class StagePeers {
 public:
  struct Parts {
    std::unique_ptr<DevicePipeline> pipeline;
    GradientTurns& turns;  // outlives it
    std::shared_ptr<DeviceCalls> calls;
    // Slices of the gradients that the first and the last stage add, in the same order on both; none on
    // others.
    std::vector<Bucket> tied;
    // Of the buckets that have such: their sums over the data group, whole on the first stage.
    std::function<Result<void>(float* gradients, void* stream)> sum_waiting;
    std::function<int(Result<void>)> keep;  // an Error, for who asks the engine; 0 where there is none
  };
  /// All stages call it. What NCCL sets up for a message waits for the other side on the host: it is done
  /// here.
  static Result<std::unique_ptr<StagePeers>> connect(Parts parts);

  /// They hold on to this.
  DlrunCudaStageCalls calls();
  Result<void> check() { return parts_.pipeline->check(); }

 private:
  explicit StagePeers(Parts parts)
      : parts_(std::move(parts)), room_(parts_.calls, DeviceCalls::Place::device) {}
  Result<void> connect_partners();
  std::vector<int> partners() const;
  Result<void> receive_values(void* values, std::size_t bytes, void* stream);
  Result<void> send_gradients(const void* gradients, std::size_t bytes, void* stream);
  Result<void> finish(float* gradients, void* stream);
  Result<void> send_tied(const float* gradients, void* stream);
  Result<void> add_tied(float* gradients, void* stream);
  Result<void> take_tied(float* gradients, void* stream);
  int before() const { return parts_.pipeline->stage() - 1; }
  int behind() const { return parts_.pipeline->stage() + 1; }
  bool is_first() const { return parts_.pipeline->stage() == 0; }
  bool is_last() const { return behind() == parts_.pipeline->stages(); }
  int other_end() const { return is_first() ? parts_.pipeline->stages() - 1 : 0; }  // of who has tied ones

  struct Waiting {  // a gradient
    const void* data;
    std::size_t bytes;
  };
  Parts parts_;
  DeviceBuffer room_;
  std::optional<Waiting> waiting_;
};

}  // namespace dlrun::runtime
