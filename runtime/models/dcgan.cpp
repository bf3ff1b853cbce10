// dcgan: a generator of images and a discriminator that tells them from real ones, trained against each other
// in one step (Radford, Metz and Chintala; the sizes and first weights of PyTorch's example: 3,576,704 and
// 2,765,568 parameters for 64x64 images of three channels). Both learn from the same weights of the other and
// are updated together, as CosmoGAN does it, so that a step is one plan: the discriminator on real images, on
// made ones, and, with its weights held, once more for what the generator is to learn. An image is halved
// down to 4 to 7 pixels, so 28, 32, 64 and 128 all go.
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr std::int64_t kNoise = 100, kFilters = 64;  // nz; ngf and ndf
constexpr float kDeviation = 0.02F, kSlope = 0.2F;

// How often an extent can be halved down to `smallest`, which is the same both ways.
struct Halvings {
  int count = 0;
  std::int64_t smallest = 0;
};

std::optional<Halvings> halvings(const InputShape& input) {
  Halvings out{.count = 0, .smallest = input.height};
  for (; out.smallest >= 8 && out.smallest % 2 == 0; ++out.count) out.smallest /= 2;
  const bool fits = out.count >= 1 && out.smallest >= 4 && out.smallest <= 7;
  return fits && input.width == input.height ? std::optional(out) : std::nullopt;
}

Value generator(GraphBuilder& g, const InputShape& input, const Halvings& by) {
  const auto layer = [&](int number, Value in, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride) {
    return g.transposed_convolution(fmt::format("generator.{}", number), in,
                                    {.filters = filters,
                                     .kernel = kernel,
                                     .stride = stride,
                                     .padding = stride / 2,
                                     .bias = Bias::none,
                                     .deviation = kDeviation});
  };
  std::int64_t filters = kFilters << (by.count - 1);
  Value x = layer(0, g.noise(kNoise), filters, by.smallest, 1);
  int number = 0;
  for (int up = 0; up < by.count; ++up) {
    x = g.relu(g.batch_norm(fmt::format("generator.{}", number + 1), x, {.deviation = kDeviation}));
    number += 3;  // the convolution, its norm and the ReLU, as PyTorch counts them
    filters /= 2;
    x = layer(number, x, up + 1 < by.count ? filters : input.channels, 4, 2);
  }
  return g.tanh(x);
}

Value discriminator(GraphBuilder& g, Value x, const Halvings& by) {
  const auto layer = [&](int number, Value in, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride) {
    return g.convolution(fmt::format("discriminator.{}", number), in,
                         {.filters = filters,
                          .kernel = kernel,
                          .stride = stride,
                          .padding = stride / 2,
                          .bias = Bias::none,
                          .deviation = kDeviation});
  };
  int number = 2;
  x = g.leaky_relu(layer(0, x, kFilters, 4, 2), kSlope);
  for (int down = 1; down < by.count; ++down, number += 3) {
    x = layer(number, x, kFilters << down, 4, 2);
    x = g.batch_norm(fmt::format("discriminator.{}", number + 1), x, {.deviation = kDeviation});
    x = g.leaky_relu(x, kSlope);
  }
  return layer(number, x, 1, by.smallest, 1);
}

}  // namespace

Result<Graph> dcgan(const InputShape& input) {
  using Wanted = op::SigmoidCrossEntropy::Wanted;
  const auto by = halvings(input);
  if (!by)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("model 'dcgan' cannot take images of {} x {}", input.height, input.width),
              .hint = "images must be square, and 4, 5, 6 or 7 pixels doubled once or more: 28, 32, 64"});
  GraphBuilder g("dcgan", input);
  g.sigmoid_cross_entropy(discriminator(g, g.input(), *by), Wanted::real);
  const Value made = generator(g, input, *by);
  g.use_weights(Weights::shared);
  g.sigmoid_cross_entropy(discriminator(g, g.detach(made), *by), Wanted::made);
  g.use_weights(Weights::frozen);
  g.sigmoid_cross_entropy(discriminator(g, made, *by), Wanted::mistaken);
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
