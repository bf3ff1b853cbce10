// StageLinks: what the borders of a stage of a pipeline ask of the stages beside it. runtime/train has the
// one over a communicator. A stage makes these calls in the order of its operators.
#pragma once

#include <cstddef>
#include <span>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class StageLinks {
 public:
  virtual ~StageLinks() = default;
  /// From the stage before, which sends as many bytes.
  virtual Result<void> receive_values(std::span<std::byte> values) = 0;
  virtual Result<void> send_gradients(std::span<const std::byte> gradients) = 0;
  /// To the stage behind.
  virtual Result<void> send_values(std::span<const std::byte> values) = 0;
  virtual Result<void> receive_gradients(std::span<std::byte> gradients) = 0;
};

}  // namespace dlrun::runtime
