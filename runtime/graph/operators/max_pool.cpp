// Max pooling. relu(max(x)) is max(relu(x)) in value and in gradient: where the maximum is positive both send
// the gradient to the same element, else both send none.
#include <fmt/format.h>

#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& max_pool_traits() {
  static constexpr std::int64_t kMaxSquare = 15, kMaxCube = 6;  // a byte has the argmax
  static const OperatorTraits row{
      .name = "max pool",
      .layer = {.name = "max-pool",
                .other_names = {"maxpool", "maxpool2d", "max-pooling", "max-pooling2d", "pool"},
                .read = [](yaml::Fields& fields, const yaml::Node& value) -> Result<Operation> {
                  return Operation(TRY(read_pool<op::MaxPool>(fields, value, "max-pool", kMaxSquare)));
                }},
      .shape = shape_by([](const op::MaxPool& spec, ShapeContext& in) -> Shape {
        if (in.inputs[0].axes == Axes::volume && spec.window > kMaxCube)
          in.refuse(fmt::format("max pooling of a volume has windows of at most {}, not {}", kMaxCube,
                                spec.window));
        return windowed_shape(in, "max pooling", in.inputs[0].channels,
                              {spec.window, spec.stride, spec.padding, spec.edge});
      }),
      .onnx = by([](const op::MaxPool& spec) { return onnx_pool("MaxPool", spec); }),
      .takes_volume = true,
      .swaps_with_relu = true};
  return row;
}

}  // namespace dlrun::runtime
