// Reshape: what a fully connected layer gives, seen as an image.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& reshape_traits() {
  static const OperatorTraits row{
      .name = "reshape",
      .shape = shape_by([](const op::Reshape& spec, ShapeContext& in) {
        if (!in.reads_vector || in.inputs[0].elements() != spec.to.elements())
          in.refuse(fmt::format("cannot see {} as an image of {}", text(in.inputs[0]), text(spec.to)));
        return spec.to;
      }),
      .takes_vector = true};
  return row;
}

}  // namespace dlrun::runtime
