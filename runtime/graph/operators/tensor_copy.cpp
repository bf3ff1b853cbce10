// Tensor copy: from a value that all ranks of a tensor group have to layers of which each has a part.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& tensor_copy_traits() {
  static const OperatorTraits row{.name = "tensor copy", .shape = shape_of_input, .elementwise = true};
  return row;
}

}  // namespace dlrun::runtime
