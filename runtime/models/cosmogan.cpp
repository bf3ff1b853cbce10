// cosmogan: a DCGAN of cosmological mass maps (Mustafa et al., "Creating Virtual Universes Using Generative
// Adversarial Networks"), of its published code: four layers of 5x5 windows down and up, 64 to 512 filters,
// noise of 64 numbers, biases everywhere (12,824,449 and 4,436,225 parameters for 256x256 maps of one
// channel). A window has two pixels of padding before it where TensorFlow's has one. Labels are never
// flipped: the code does that to one step in a hundred.
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr std::int64_t kNoise = 64, kFilters = 64;
constexpr int kLayers = 4;
constexpr float kDeviation = 0.02F, kSlope = 0.2F;

Value generator(GraphBuilder& g, const InputShape& input) {
  std::int64_t filters = kFilters << (kLayers - 1);
  const Shape smallest{filters, input.height >> kLayers, input.width >> kLayers};
  Value x = g.fully_connected("generator.h0", g.noise(kNoise),
                              op::FullyConnected{.outputs = smallest.elements(), .deviation = kDeviation});
  x = g.reshape(x, smallest);
  for (int layer = 1; layer <= kLayers; ++layer) {
    x = g.relu(g.batch_norm(fmt::format("generator.bn{}", layer - 1), x));
    filters /= 2;
    x = g.transposed_convolution(fmt::format("generator.h{}", layer), x,
                                 {.filters = layer < kLayers ? filters : input.channels,
                                  .kernel = 5,
                                  .stride = 2,
                                  .padding = 2,
                                  .output_padding = 1,
                                  .deviation = kDeviation});
  }
  return g.tanh(x);
}

Value discriminator(GraphBuilder& g, Value x) {
  for (int layer = 0; layer < kLayers; ++layer) {
    op::Convolution spec{.filters = kFilters << layer, .kernel = 5, .stride = 2, .padding = 2};
    spec.deviation = kDeviation;
    x = g.convolution(fmt::format("discriminator.h{}", layer), x, spec);
    if (layer > 0) x = g.batch_norm(fmt::format("discriminator.bn{}", layer), x);
    x = g.leaky_relu(x, kSlope);
  }
  return g.fully_connected(fmt::format("discriminator.h{}", kLayers), x,
                           op::FullyConnected{.outputs = 1, .deviation = kDeviation});
}

}  // namespace

Result<Graph> cosmogan(const InputShape& input) {
  constexpr std::int64_t step = 1 << kLayers;
  if (input.height < step || input.width < step || input.height % step != 0 || input.width % step != 0)
    return fail(Error{
        .kind = ErrorKind::input,
        .what = fmt::format("model 'cosmogan' cannot take images of {} x {}", input.height, input.width),
        .hint =
            fmt::format("height and width must be multiples of {}; published are maps of 256 x 256", step)});
  using Wanted = op::SigmoidCrossEntropy::Wanted;
  GraphBuilder g("cosmogan", input);
  g.sigmoid_cross_entropy(discriminator(g, g.input()), Wanted::real);
  const Value made = generator(g, input);
  g.use_weights(Weights::shared);
  g.sigmoid_cross_entropy(discriminator(g, g.detach(made)), Wanted::made);
  g.use_weights(Weights::frozen);
  g.sigmoid_cross_entropy(discriminator(g, made), Wanted::mistaken);
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
