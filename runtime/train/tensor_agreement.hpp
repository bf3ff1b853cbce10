// TensorAgreement: what the ranks of a tensor group do with gradients that each has of its samples' sums
// already. Gradients of whole parameters, and the step's totals, are equal on all of them as far as their
// processors round alike: they become the mean, which is the same bits everywhere, so that parameters stay
// equal for ever. Those of divided parameters are each rank's own.
#pragma once

#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

class TensorAgreement {
 public:
  TensorAgreement(Engine& engine, Communicator& tensor);

  Result<void> agree();
  /// Of all gradients of the whole model.
  Result<double> square_sum() const;

 private:
  Engine* engine_;
  Communicator* tensor_;
  std::vector<GradientSlice> slices_;
  std::vector<float> together_;
};

/// In the order of a sum with sixteen lanes.
double square_sum_of(std::span<const float> gradients);

}  // namespace dlrun::runtime
