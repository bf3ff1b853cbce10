// Leaky ReLU.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

// A word, or the slope where the input is negative.
Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::LeakyRelu out;
  if (value.kind == yaml::Kind::scalar && (value.scalar.empty() || value.scalar == "leaky-relu"))
    return Operation(out);
  out.slope = static_cast<float>(TRY(yaml::as_number(value, fields.path("leaky-relu"), 0, 1)));
  return Operation(out);
}

}  // namespace

const OperatorTraits& leaky_relu_traits() {
  static const OperatorTraits row{
      .name = "leaky relu",
      .layer = {.name = "leaky-relu", .other_names = {"leakyrelu"}, .read = read},
      .shape = shape_by([](const op::LeakyRelu& spec, ShapeContext& in) {
        // The gradient is told from the output's sign, which a slope below 0 would turn.
        if (!(spec.slope >= 0 && spec.slope <= 1))
          in.refuse(fmt::format("a leaky ReLU's slope must be in [0, 1], not {}", spec.slope));
        return in.inputs[0];
      }),
      .onnx = by([](const op::LeakyRelu& spec) {
        return OnnxForm{.type = "LeakyRelu", .attributes = {{"alpha", spec.slope}}};
      }),
      .elementwise = true,
      .activation = by([](const op::LeakyRelu& spec) {
        return ActivationRule{Activation::leaky_relu, spec.slope};
      }),
      .backward_reads_output = true};
  return row;
}

}  // namespace dlrun::runtime
