// Noise: normal random numbers, what a GAN's generator starts from.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& noise_traits() {
  static const OperatorTraits row{
      .name = "noise",
      .inputs = Inputs::none,
      .shape = shape_by([](const op::Noise& spec, ShapeContext&) -> Shape {
        return {spec.size, 1, 1};
      }),
      .random = by([](const op::Noise&) { return RandomRule{Randomness::samples}; })};
  return row;
}

}  // namespace dlrun::runtime
