// Sigmoid cross-entropy of one logit: of two classes, or one of a GAN's three losses, which are all reported.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

using Target = op::SigmoidCrossEntropy::Target;

}  // namespace

const OperatorTraits& sigmoid_cross_entropy_traits() {
  static const OperatorTraits row{
      .name = "sigmoid cross entropy",
      .shape = shape_by([](const op::SigmoidCrossEntropy& spec, ShapeContext& in) -> Shape {
        if (in.inputs[0] != Shape{1, 1, 1})
          in.refuse(fmt::format("the scores are {}, not one logit", text(in.inputs[0])));
        if (spec.target == Target::labels && in.data.classes != 2)
          in.refuse("one logit tells two classes apart");
        return {1, 1, 1};
      }),
      .takes_vector = true,
      .loss = LossKind::each,
      .of_generator =
          by([](const op::SigmoidCrossEntropy& spec) { return spec.target == Target::generator; })};
  return row;
}

}  // namespace dlrun::runtime
