// Max pooling. relu(max(x)) is max(relu(x)) in value and in gradient: where the maximum is positive both send
// the gradient to the same element, else both send none.
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& max_pool_traits() {
  constexpr std::int64_t kWidest = 15;  // a byte has the argmax
  static const OperatorTraits row{
      .name = "max pool",
      .layer = {.name = "max-pool",
                .other_names = {"maxpool", "maxpool2d", "max-pooling", "max-pooling2d", "pool"},
                .read = [](yaml::Fields& fields, const yaml::Node& value) -> Result<Operation> {
                  return Operation(TRY(read_pool<op::MaxPool>(fields, value, "max-pool", kWidest)));
                }},
      .shape = shape_by([](const op::MaxPool& spec, ShapeContext& in) -> Shape {
        const Shape from = in.inputs[0];
        const Window window{spec.window, spec.stride, spec.padding, spec.edge};
        return {from.channels, windowed(in, "max pooling", from.height, window),
                windowed(in, "max pooling", from.width, window)};
      }),
      .onnx = by([](const op::MaxPool& spec) { return onnx_pool("MaxPool", spec); }),
      .swaps_with_relu = true};
  return row;
}

}  // namespace dlrun::runtime
