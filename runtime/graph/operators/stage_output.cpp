// Stage output: what a stage of a pipeline gives to the one behind.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& stage_output_traits() {
  static const OperatorTraits row{.name = "stage output", .shape = shape_of_input};
  return row;
}

}  // namespace dlrun::runtime
