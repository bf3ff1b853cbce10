// Tensor gather: a value of all positions, from the slices that the ranks of a tensor group have.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

// Its shape is that of a value of the whole model, or a slice: graph/split.cpp sets it.
const OperatorTraits& tensor_gather_traits() {
  static const OperatorTraits row{.name = "tensor gather", .shape = shape_of_input};
  return row;
}

}  // namespace dlrun::runtime
