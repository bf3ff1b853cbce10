// TensorGroup: what operators of a divided model ask of the other ranks that have parts of it. runtime/train
// has the one over a communicator. All ranks of a group make the same calls in the same order.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/comm_dtype.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  virtual int ranks() const = 0;
  /// Sums over the group, in place: the same bits on all of its ranks. Added in f32; `dtype` is what terms
  /// and sum are rounded to in transit.
  virtual Result<void> sum(std::span<float> data, CommDtype dtype) = 0;
  /// `mine`: this rank's block of the sum of `data`, which has a block of mine.size() numbers for each rank,
  /// in their order. Rounded as in sum().
  virtual Result<void> reduce_scatter(std::span<const float> data, std::span<float> mine,
                                      CommDtype dtype) = 0;
  /// What each rank has, in the order of the ranks: ranks() times as many bytes.
  virtual Result<void> gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

}  // namespace dlrun::runtime
