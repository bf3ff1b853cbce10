// Linear: a fully connected layer of each position by itself.
#include <fmt/format.h>

#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  return Operation(op::Linear{.outputs = TRY(yaml::as_integer(value, fields.path("linear"), 1, kMaxOutputs)),
                              .bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none,
                              .split = TRY(read_split(fields))});
}

}  // namespace

const OperatorTraits& linear_traits() {
  static const OperatorTraits row{
      .name = "linear",
      .layer = {.name = "linear", .other_names = {"projection"}, .read = read},
      .shape = shape_by([](const op::Linear& spec, ShapeContext& in) {
        if (in.inputs[0].axes == Axes::image)
          in.refuse(
              fmt::format("{} is linear, which reads sequences; of an image of {}, write fully-connected",
                          in.name, text(in.inputs[0])));
        return sequence(in.inputs[0].positions(), spec.outputs);
      }),
      .parameters = by([](const op::Linear& spec, const Shape& from) {
        auto weights = filters({spec.outputs, from.channels}, from.channels, spec.init_std);
        return spec.bias == Bias::none ? weights : with_bias(std::move(weights), spec.outputs, spec.init_std);
      }),
      .products = by([](const op::Linear& spec, const Shape& from, const Shape&) {
        return spec.outputs * from.elements();
      }),
      .by_position = true,
      .backward_reads_input = true,
      .split = by([](const op::Linear& spec) { return form_of(spec.split); }),
      .divide = divide_outputs<op::Linear>};
  return row;
}

}  // namespace dlrun::runtime
