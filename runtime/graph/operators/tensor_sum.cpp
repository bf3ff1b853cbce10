// Tensor sum: what the ranks of a tensor group have computed of a value becomes that value.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& tensor_sum_traits() {
  static const OperatorTraits row{.name = "tensor sum", .shape = shape_of_input, .elementwise = true};
  return row;
}

}  // namespace dlrun::runtime
