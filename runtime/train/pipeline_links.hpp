// PipelineLinks: what stages of a pipeline send each other, over their group, gradients in their turn
// (GradientTurns).
#pragma once

#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/stage_links.hpp"

namespace dlrun::runtime {

class PipelineLinks final : public StageLinks {
 public:
  /// The ranks of `group` are its stages; it outlives this.
  void connect(Communicator& group) { group_ = &group; }
  /// An update begins, in which so many values come from the stage before.
  void begin_update(int micro_batches) { turns().begin_update(micro_batches); }

  Result<void> receive_values(std::span<std::byte> values) override;
  Result<void> send_gradients(std::span<const std::byte> gradients) override;
  Result<void> send_values(std::span<const std::byte> values) override;
  Result<void> receive_gradients(std::span<std::byte> gradients) override;

 private:
  Communicator* group_ = nullptr;
  std::vector<std::byte> waiting_;  // a gradient
};

}  // namespace dlrun::runtime
