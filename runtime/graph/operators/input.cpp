// Input: the images, as whoever trains fills them.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& input_traits() {
  static const OperatorTraits row{
      .name = "input", .inputs = Inputs::none, .shape = [](Operation&, ShapeContext& in) -> Shape {
        return {in.data.channels, in.data.height, in.data.width};
      }};
  return row;
}

}  // namespace dlrun::runtime
