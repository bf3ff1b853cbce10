// Flatten: an image seen as a vector.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& flatten_traits() {
  static const OperatorTraits row{.name = "flatten",
                                  .layer = {.name = "flatten", .read = read_plain<op::Flatten>},
                                  .shape = [](Operation&, ShapeContext& in) -> Shape {
                                    return {in.inputs[0].elements(), 1, 1};
                                  },
                                  .onnx = [](const Operation&) { return OnnxForm{.type = "Flatten"}; },
                                  .takes_vector = true,
                                  .flattens = true};
  return row;
}

}  // namespace dlrun::runtime
