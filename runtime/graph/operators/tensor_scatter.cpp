// Tensor scatter: what the ranks of a tensor group have computed of a value becomes their slices of it.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

// Its shape is that of a value of the whole model, or a slice: graph/split.cpp sets it.
const OperatorTraits& tensor_scatter_traits() {
  static const OperatorTraits row{.name = "tensor scatter", .shape = shape_of_input};
  return row;
}

}  // namespace dlrun::runtime
