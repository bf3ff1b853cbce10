// Detach: the value as it is, without a gradient.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& detach_traits() {
  static const OperatorTraits row{
      .name = "detach", .shape = shape_of_input, .elementwise = true, .stops_gradient = true};
  return row;
}

}  // namespace dlrun::runtime
