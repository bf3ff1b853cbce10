// Global average pooling: the mean of each channel.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& global_average_pool_traits() {
  static const OperatorTraits row{
      .name = "average pool",
      .layer = {.name = "global-average-pool",
                .other_names = {"adaptiveavgpool2d", "global-average-pooling2d", "gap"},
                .read = read_plain<op::GlobalAveragePool>},
      .shape = [](Operation&, ShapeContext& in) -> Shape {
        return {in.inputs[0].channels, 1, 1};
      },
      .onnx = [](const Operation&) { return OnnxForm{.type = "GlobalAveragePool"}; },
      .takes_volume = true};
  return row;
}

}  // namespace dlrun::runtime
