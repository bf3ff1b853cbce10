// Fully connected layer: a row of weights per output, over the whole image.
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

// A number, or "classes", or "targets", which are the same word for other data.
Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  if (value.kind == yaml::Kind::scalar && (value.scalar == "classes" || value.scalar == "targets"))
    return Operation(
        op::FullyConnected{.outputs = op::FullyConnected::kOnePerClass, .split = TRY(read_split(fields))});
  return Operation(op::FullyConnected{
      .outputs = TRY(yaml::as_integer(value, fields.path("fully-connected"), 1, kMaxOutputs)),
      .split = TRY(read_split(fields))});
}

Shape shape(op::FullyConnected& spec, const ShapeContext& in) {
  if (spec.outputs == op::FullyConnected::kOnePerClass) spec.outputs = in.data.outputs();
  return {spec.outputs, 1, 1};
}

}  // namespace

const OperatorTraits& fully_connected_traits() {
  static const OperatorTraits row{
      .name = "fully connected",
      .layer = {.name = "fully-connected", .other_names = {"dense", "fc", "inner-product"}, .read = read},
      .shape = shape_by([](op::FullyConnected& spec, ShapeContext& in) { return shape(spec, in); }),
      .parameters = by([](const op::FullyConnected& spec, const Shape& from) {
        return with_bias(filters({spec.outputs, from.elements()}, from.channels, spec.init_std), spec.outputs,
                         spec.init_std);
      }),
      .products = by([](const op::FullyConnected& spec, const Shape& from, const Shape&) {
        return spec.outputs * from.elements();
      }),
      .onnx =
          [](const Operation&) {
            return OnnxForm{
                .type = "Gemm", .attributes = {{"transB", std::int64_t{1}}}, .takes_matrix = true};
          },
      .takes_vector = true,
      .gives_vector = true,
      .backward_reads_input = true,
      .backward_reads_output = true,
      .split = by([](const op::FullyConnected& spec) { return form_of(spec.split); }),
      .divide = divide_outputs<op::FullyConnected>,
      .gives_scores = by(
          [](const op::FullyConnected& spec) { return spec.outputs == op::FullyConnected::kOnePerClass; })};
  return row;
}

}  // namespace dlrun::runtime
