// AccumulatedGradients: the sum of the gradients and totals of a rank's batches before the last one of an
// update. The engine leaves each batch's in its arena; with the last one the sum is added there, bucket by
// bucket, before it goes to the other ranks. An engine on a device adds gradients up there, and only the
// totals are left to this.
#pragma once

#include <memory>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

class AccumulatedGradients {
 public:
  static Result<std::unique_ptr<AccumulatedGradients>> make(Engine& engine);
  AccumulatedGradients(const AccumulatedGradients&) = delete;
  AccumulatedGradients& operator=(const AccumulatedGradients&) = delete;

  /// An update begins: no batch of another is left.
  void begin() { batches_ = 0; }
  /// The arena has all gradients and totals of a batch that is not the last.
  void keep();
  /// The same numbers of the arena are the last batch's: they become the sum of all.
  void add_to(std::span<float> numbers);

 private:
  AccumulatedGradients(Engine& engine, HugeBuffer sum) : engine_(engine), sum_(std::move(sum)) {}
  std::span<float> kept_part() const;

  Engine& engine_;
  HugeBuffer sum_;
  std::size_t batches_ = 0;
};

}  // namespace dlrun::runtime
