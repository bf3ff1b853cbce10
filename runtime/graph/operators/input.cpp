// Input: the images, volumes or tokens, as whoever trains fills them.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& input_traits() {
  static const OperatorTraits row{.name = "input",
                                  .inputs = Inputs::none,
                                  .shape = shape_by([](op::Input& spec, ShapeContext& in) -> Shape {
                                    spec.kind = in.data.kind;
                                    if (spec.kind == SampleKind::tokens) return sequence(in.data.height, 1);
                                    if (in.data.depth > 0)
                                      return volume(in.data.channels, in.data.depth, in.data.height,
                                                    in.data.width);
                                    return {in.data.channels, in.data.height, in.data.width};
                                  })};
  return row;
}

}  // namespace dlrun::runtime
