// TensorAgreement: what the ranks of a tensor group do with gradients that each has of its samples' sums
// already. Gradients of whole parameters, and the step's totals, are equal on all of them as far as their
// processors round alike: they become the mean, which is the same bits everywhere, so that parameters stay
// equal for ever. Where each rank has a term of such a gradient, from its slice of the positions, it becomes
// the sum. Those of divided parameters are each rank's own. Where a rank has the sums of its part of
// the optimizer's state alone, tensor ranks may have other parts of a whole parameter: its gradient first
// comes to all ranks of the data group.
#pragma once

#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/parameter_update.hpp"

namespace dlrun::runtime {

class TensorAgreement {
 public:
  struct Groups {
    Communicator &tensor, &data;
  };
  /// `sums`: which of them a rank has in agree().
  TensorAgreement(Engine& engine, const Groups& groups, ParameterUpdate::Sums sums);

  Result<void> agree();

 private:
  Engine* engine_;
  Groups groups_;
  ParameterUpdate::Sums sums_;
  std::vector<GradientSlice> common_;  // whole ones, then those of terms
  std::vector<float> together_;
};

}  // namespace dlrun::runtime
