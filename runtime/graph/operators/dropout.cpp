// Dropout.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& dropout_traits() {
  static const OperatorTraits row{
      .name = "dropout",
      .layer = {.name = "dropout",
                .read = [](yaml::Fields& fields, const yaml::Node& value) -> Result<Operation> {
                  return Operation(op::Dropout{
                      static_cast<float>(TRY(yaml::as_number(value, fields.path("dropout"), 0, 0.999)))});
                }},
      .shape = shape_by([](const op::Dropout& spec, ShapeContext& in) {
        if (!(spec.probability >= 0 && spec.probability < 1))
          in.refuse(fmt::format("a dropout probability must be in [0, 1), not {}", spec.probability));
        return in.inputs[0];
      }),
      .onnx = [](const Operation&) { return OnnxForm{.type = "Identity"}; },
      .elementwise = true,
      .random = by([](const op::Dropout& spec) {
        return RandomRule{Randomness::mask, spec.probability};
      })};
  return row;
}

}  // namespace dlrun::runtime
