// Softmax cross-entropy of one score per class: the end of a model, or of a head that helps training.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& softmax_cross_entropy_traits() {
  static const OperatorTraits row{
      .name = "loss",
      .shape = [](Operation&, ShapeContext& in) -> Shape {
        const Shape& scores = in.inputs[0];
        if (scores != Shape{in.data.classes, 1, 1})
          in.refuse(fmt::format("the scores are {}, not one a class", text(scores)));
        return {1, 1, 1};
      },
      .takes_vector = true,
      .loss = LossKind::last};
  return row;
}

}  // namespace dlrun::runtime
