// Hyperbolic tangent.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& tanh_traits() {
  static const OperatorTraits row{
      .name = "tanh",
      .layer = {.name = "tanh", .read = read_plain<op::Tanh>},
      .shape = shape_of_input,
      .onnx = [](const Operation&) { return OnnxForm{.type = "Tanh"}; },
      .elementwise = true,
      .activation = by([](const op::Tanh&) { return ActivationRule{Activation::tanh}; }),
      .backward_reads_output = true};
  return row;
}

}  // namespace dlrun::runtime
