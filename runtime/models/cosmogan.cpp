// cosmogan: a DCGAN of cosmological mass maps (Mustafa et al., "Creating Virtual Universes Using Generative
// Adversarial Networks"), of its published code: four layers of 5x5 windows down and up, 64 to 512 filters,
// noise of 64 numbers, biases everywhere (12,824,449 and 4,436,225 parameters for 256x256 maps of one
// channel). A window has two pixels of padding before it where TensorFlow's has one. Labels are never
// flipped: the code does that to one step in a hundred.
#include "runtime/models/gan.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr std::int64_t kMapNoise = 64, kMapFilters = 64;
constexpr int kMapLayers = 4;

Value map_image(GraphBuilder& g, const InputShape& input) {
  std::int64_t filters = kMapFilters << (kMapLayers - 1);
  const Shape smallest{filters, input.height >> kMapLayers, input.width >> kMapLayers};
  Value x = g.fully_connected("generator.h0", g.noise(kMapNoise),
                              op::FullyConnected{.outputs = smallest.elements(), .init_std = kGanInitStd});
  x = g.reshape(x, smallest);
  for (int layer = 1; layer <= kMapLayers; ++layer) {
    x = g.relu(g.batch_norm(fmt::format("generator.bn{}", layer - 1), x));
    filters /= 2;
    x = g.transposed_convolution(fmt::format("generator.h{}", layer), x,
                                 {.filters = layer < kMapLayers ? filters : input.channels,
                                  .kernel = 5,
                                  .stride = 2,
                                  .padding = 2,
                                  .output_padding = 1,
                                  .init_std = kGanInitStd});
  }
  return g.tanh(x);
}

Value map_logit(GraphBuilder& g, Value x) {
  for (int layer = 0; layer < kMapLayers; ++layer) {
    op::Convolution spec{.filters = kMapFilters << layer, .kernel = 5, .stride = 2, .padding = 2};
    spec.init_std = kGanInitStd;
    x = g.convolution(fmt::format("discriminator.h{}", layer), x, spec);
    if (layer > 0) x = g.batch_norm(fmt::format("discriminator.bn{}", layer), x);
    x = g.leaky_relu(x, kGanSlope);
  }
  return g.fully_connected(fmt::format("discriminator.h{}", kMapLayers), x,
                           op::FullyConnected{.outputs = 1, .init_std = kGanInitStd});
}

}  // namespace

Result<Graph> cosmogan(const InputShape& input) {
  constexpr std::int64_t step = 1 << kMapLayers;
  if (input.height < step || input.width < step || input.height % step != 0 || input.width % step != 0)
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("model 'cosmogan' cannot take images of {} x {}", input.height, input.width),
        .hint =
            fmt::format("height and width must be multiples of {}; published are maps of 256 x 256", step)});
  return gan(
      GraphBuilder("cosmogan", input), [&](GraphBuilder& g) { return map_image(g, input); },
      [](GraphBuilder& g, Value x) { return map_logit(g, x); });
}

}  // namespace dlrun::runtime
