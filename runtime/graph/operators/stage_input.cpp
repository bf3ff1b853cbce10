// Stage input: what a stage of a pipeline gets from the one before.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

// Its shape is that of a value of the whole model: graph/stages.cpp sets it.
const OperatorTraits& stage_input_traits() {
  static const OperatorTraits row{
      .name = "stage input",
      .inputs = Inputs::none,
      .shape = shape_by([](const op::StageInput& spec, ShapeContext&) { return spec.rows; }),
      .asks_gradient = true};
  return row;
}

}  // namespace dlrun::runtime
