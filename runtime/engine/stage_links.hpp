// StageLinks: what the borders of a stage of a pipeline ask of the stages beside it. runtime/train has the
// one over a communicator; an engine on a GPU sends by itself (device_pipeline.hpp) and takes its turns from
// here. A stage makes these calls in the order of its operators.
#pragma once

#include <cstddef>
#include <span>

#include "src/base/result.hpp"

namespace dlrun::runtime {

/// When a gradient goes to the stage before. A message waits for the other side, so two stages must not send
/// to each other at once: a gradient waits until this stage has received the next values, where more are to
/// come in the update, since the stage before sends these first (as Megatron-LM's
/// send_backward_recv_forward).
class GradientTurns {
 public:
  /// An update begins, in which so many values come from the stage before.
  void begin_update(int micro_batches) { values_to_come_ = micro_batches; }
  /// Also of an evaluation, in which no gradient follows.
  void values_came() { values_to_come_ -= values_to_come_ > 0 ? 1 : 0; }
  bool gradient_waits() const { return values_to_come_ > 0; }

 private:
  int values_to_come_ = 0;
};

class StageLinks {
 public:
  virtual ~StageLinks() = default;
  /// From the stage before, which sends as many bytes.
  virtual Result<void> receive_values(std::span<std::byte> values) = 0;
  virtual Result<void> send_gradients(std::span<const std::byte> gradients) = 0;
  /// To the stage behind.
  virtual Result<void> send_values(std::span<const std::byte> values) = 0;
  virtual Result<void> receive_gradients(std::span<std::byte> gradients) = 0;
  GradientTurns& turns() { return turns_; }

 private:
  GradientTurns turns_;
};

}  // namespace dlrun::runtime
