// cosmoflow: predicts cosmological parameters from maps of matter in a cube (Mathuriya et al., "CosmoFlow:
// Using Deep Learning to Learn the Universe at Scale"), in the form of MLPerf HPC since version 1.0
// (mlcommons/hpc, cosmoflow/models/cosmoflow.py and configs/cosmo.yaml; version 0.7 had windows of 2x2x2):
// five layers of 3x3x3 windows with 32 to 512 filters, each halved by max pooling, and two layers of 128 and
// 64 numbers with dropout of 0.5 (8,907,556 parameters for four targets from 4x128x128x128 numbers; see its
// test). The slope of its leaky ReLUs is Keras's 0.3. Its last layer gives the numbers as they are, where
// MLPerf's has 1.2 tanh. For smaller cubes there are fewer layers: as many as halve the cube to no less than
// four.
#include <algorithm>

#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr float kLeak = 0.3F, kDropout = 0.5F;
constexpr std::int64_t kFirstFilters = 32, kSmallest = 4;
constexpr int kMaxLayers = 5;

int layers_of(const InputShape& input) {
  const std::int64_t side = std::min({input.depth, input.height, input.width});
  int out = 0;
  while (out < kMaxLayers && side >> (out + 1) >= kSmallest) ++out;
  return out;
}

}  // namespace

Result<Graph> cosmoflow(const InputShape& input) {
  const int layers = input.depth > 0 ? layers_of(input) : 0;
  if (layers == 0)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("model 'cosmoflow' cannot take samples of {} x {} x {} x {}",
                                          input.channels, input.depth, input.height, input.width),
                      .hint = "it reads volumes of at least 8 x 8 x 8: axes CDHW, DHWC or DHW"});
  GraphBuilder g("cosmoflow", input);
  Value x = g.input();
  for (int layer = 0; layer < layers; ++layer) {
    const op::Convolution spec{.filters = kFirstFilters << layer, .kernel = 3, .padding = 1};
    x = g.leaky_relu(g.convolution(fmt::format("conv{}", layer + 1), x, spec), kLeak);
    x = g.max_pool(x, {.window = 2, .stride = 2});
  }
  x = g.flatten(x);
  for (const std::int64_t size : {128, 64})
    x = g.dropout(g.leaky_relu(g.fully_connected(fmt::format("fc{}", size), x, size), kLeak), kDropout);
  g.softmax_cross_entropy(g.fully_connected("out", x, input.outputs()));
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
