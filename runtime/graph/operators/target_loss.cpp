// Target loss: the distance of a row's numbers from its targets, a mean over the numbers: the end of a model
// that predicts numbers, or tells for each of several labels whether it is there.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& target_loss_traits() {
  static const OperatorTraits row{
      .name = "target loss",
      .shape = [](Operation&, ShapeContext& in) -> Shape {
        const Shape& scores = in.inputs[0];
        if (scores != Shape{in.data.targets, 1, 1})
          in.refuse(fmt::format("it gives {}, not one number for each of the {} targets", text(scores),
                                in.data.targets));
        return {1, 1, 1};
      },
      .takes_vector = true,
      .loss = LossKind::last};
  return row;
}

}  // namespace dlrun::runtime
