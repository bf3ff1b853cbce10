// Average pooling over windows.
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  auto out = TRY(read_pool<op::AveragePool>(fields, value, "average-pool", kMaxWindow));
  out.counted = TRY(fields.bool_or("count-padding", true)) ? Padding::counts : Padding::ignored;
  return Operation(out);
}

Shape shape(const op::AveragePool& spec, ShapeContext& in) {
  // Which zeros beyond the edge count is not the same everywhere; nobody needs both at once.
  if (spec.edge == Edge::kept && spec.padding != 0 && spec.counted == Padding::counts)
    in.refuse("average pooling keeps the edge or counts its padding, not both");
  return windowed_shape(in, "average pooling", in.inputs[0].channels,
                        {spec.window, spec.stride, spec.padding, spec.edge});
}

}  // namespace

const OperatorTraits& average_pool_traits() {
  static const OperatorTraits row{
      .name = "window average pool",
      .layer = {.name = "average-pool",
                .other_names = {"avgpool", "avgpool2d", "avg-pool", "average-pooling2d"},
                .read = read},
      .shape = shape_by([](const op::AveragePool& spec, ShapeContext& in) { return shape(spec, in); }),
      .onnx = by([](const op::AveragePool& spec) {
        OnnxForm out = onnx_pool("AveragePool", spec);
        out.attributes.push_back({"count_include_pad", std::int64_t{spec.counted == Padding::counts}});
        return out;
      }),
      .takes_volume = true};
  return row;
}

}  // namespace dlrun::runtime
