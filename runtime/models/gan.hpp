// What GANs have in common (Radford, Metz and Chintala): the standard deviation of initial weights, the
// slope of leaky ReLUs, and how a generator and a discriminator become one plan: the discriminator on real
// images, on generated ones, and, with its weights frozen, once more for the gradient of the generator. Both
// learn from the same weights of the other and are updated together, as CosmoGAN does it.
#pragma once

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

inline constexpr float kGanInitStd = 0.02F;
inline constexpr float kGanSlope = 0.2F;  // of leaky ReLUs

// `generate` makes images from a noise of its own; `judge` gives an image's logit.
template <class Generate, class Judge>
Result<Graph> gan(GraphBuilder g, const Generate& generate, const Judge& judge) {
  using Target = op::SigmoidCrossEntropy::Target;
  g.sigmoid_cross_entropy(judge(g, g.input()), Target::real);
  const Value made = generate(g);
  g.use_weights(Weights::shared);
  g.sigmoid_cross_entropy(judge(g, g.detach(made)), Target::fake);
  g.use_weights(Weights::frozen);
  g.sigmoid_cross_entropy(judge(g, made), Target::generator);
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
