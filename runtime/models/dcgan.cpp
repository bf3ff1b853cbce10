// dcgan: a generator of images and a discriminator that tells them from real ones, trained against each other
// (Radford, Metz and Chintala; the sizes and first weights of PyTorch's example: 3,576,704 and 2,765,568
// parameters for 64x64 images of three channels). An image is halved down to 4 to 7 pixels, so 28, 32, 64 and
// 128 all go.
#include "runtime/models/gan.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr std::int64_t kDcganNoise = 100, kDcganFilters = 64;  // nz; ngf and ndf

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

// Of a convolution, whichever way round.
template <class Operation>
Operation window(std::int64_t filters, std::int64_t kernel, std::int64_t stride) {
  return {.filters = filters,
          .kernel = kernel,
          .stride = stride,
          .padding = stride / 2,
          .bias = Bias::none,
          .init_std = kGanInitStd};
}

Value dcgan_image(GraphBuilder& g, const InputShape& input, const Halvings& by) {
  const auto layer = [&](int number, Value in, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride) {
    return g.transposed_convolution(fmt::format("generator.{}", number), in,
                                    window<op::TransposedConvolution>(filters, kernel, stride));
  };
  std::int64_t filters = kDcganFilters << (by.count - 1);
  Value x = layer(0, g.noise(kDcganNoise), filters, by.smallest, 1);
  int number = 0;
  for (int up = 0; up < by.count; ++up) {
    x = g.relu(g.batch_norm(fmt::format("generator.{}", number + 1), x, {.init_std = kGanInitStd}));
    number += 3;  // the convolution, its norm and the ReLU, as PyTorch counts them
    filters /= 2;
    x = layer(number, x, up + 1 < by.count ? filters : input.channels, 4, 2);
  }
  return g.tanh(x);
}

Value dcgan_logit(GraphBuilder& g, Value x, const Halvings& by) {
  const auto layer = [&](int number, Value in, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride) {
    return g.convolution(fmt::format("discriminator.{}", number), in,
                         window<op::Convolution>(filters, kernel, stride));
  };
  int number = 2;
  x = g.leaky_relu(layer(0, x, kDcganFilters, 4, 2), kGanSlope);
  for (int down = 1; down < by.count; ++down, number += 3) {
    x = layer(number, x, kDcganFilters << down, 4, 2);
    x = g.batch_norm(fmt::format("discriminator.{}", number + 1), x, {.init_std = kGanInitStd});
    x = g.leaky_relu(x, kGanSlope);
  }
  return layer(number, x, 1, by.smallest, 1);
}

}  // namespace

Result<Graph> dcgan(const InputShape& input) {
  const auto by = halvings(input);
  if (!by)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("model 'dcgan' cannot take images of {} x {}", input.height, input.width),
              .hint = "images must be square, and 4, 5, 6 or 7 pixels doubled once or more: 28, 32, 64"});
  return gan(
      GraphBuilder("dcgan", input), [&](GraphBuilder& g) { return dcgan_image(g, input, *by); },
      [&](GraphBuilder& g, Value x) { return dcgan_logit(g, x, *by); });
}

}  // namespace dlrun::runtime
