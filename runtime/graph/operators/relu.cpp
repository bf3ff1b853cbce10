// ReLU.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& relu_traits() {
  static const OperatorTraits row{
      .name = "relu",
      .layer = {.name = "relu", .other_names = {"relu6"}, .read = read_plain<op::Relu>},
      .shape = shape_of_input,
      .onnx = [](const Operation&) { return OnnxForm{.type = "Relu"}; },
      .elementwise = true,
      .activation = by([](const op::Relu&) { return ActivationRule{Activation::relu}; }),
      .backward_reads_output = true};
  return row;
}

}  // namespace dlrun::runtime
