// alexnet: the one-column AlexNet that torchvision has, names included (61,100,840 parameters for 224x224
// colour images in 1000 classes). caffenet: the two-column one as Caffe has it, with groups and local
// response normalization (60,965,224 parameters for 227x227).
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

// The two large layers, which have most of the weights: a tensor group divides them.
constexpr op::FullyConnected kColumns{.outputs = 4096, .split = SplitBy::columns};
constexpr op::FullyConnected kRows{.outputs = 4096, .split = SplitBy::rows};

}  // namespace

Result<Graph> alexnet(const InputShape& input) {
  GraphBuilder g("alexnet", input);
  constexpr op::MaxPool pool{.window = 3, .stride = 2};
  Value x = g.input();
  x = g.relu(g.convolution("features.0", x, {.filters = 64, .kernel = 11, .stride = 4, .padding = 2}));
  x = g.max_pool(x, pool);
  x = g.relu(g.convolution("features.3", x, {.filters = 192, .kernel = 5, .padding = 2}));
  x = g.max_pool(x, pool);
  x = g.relu(g.convolution("features.6", x, {.filters = 384, .kernel = 3, .padding = 1}));
  x = g.relu(g.convolution("features.8", x, {.filters = 256, .kernel = 3, .padding = 1}));
  x = g.relu(g.convolution("features.10", x, {.filters = 256, .kernel = 3, .padding = 1}));
  x = g.dropout(g.flatten(g.max_pool(x, pool)), 0.5F);
  x = g.dropout(g.relu(g.fully_connected("classifier.1", x, kColumns)), 0.5F);
  x = g.relu(g.fully_connected("classifier.4", x, kRows));
  g.softmax_cross_entropy(g.fully_connected("classifier.6", x, input.outputs()));
  return std::move(g).finish();
}

Result<Graph> caffenet(const InputShape& input) {
  GraphBuilder g("caffenet", input);
  constexpr op::MaxPool pool{.window = 3, .stride = 2, .edge = Edge::kept};
  Value x = g.input();
  x = g.relu(g.convolution("conv1", x, {.filters = 96, .kernel = 11, .stride = 4}));
  x = g.local_response_norm(g.max_pool(x, pool), {});
  x = g.relu(g.convolution("conv2", x, {.filters = 256, .kernel = 5, .padding = 2, .groups = 2}));
  x = g.local_response_norm(g.max_pool(x, pool), {});
  x = g.relu(g.convolution("conv3", x, {.filters = 384, .kernel = 3, .padding = 1}));
  x = g.relu(g.convolution("conv4", x, {.filters = 384, .kernel = 3, .padding = 1, .groups = 2}));
  x = g.relu(g.convolution("conv5", x, {.filters = 256, .kernel = 3, .padding = 1, .groups = 2}));
  x = g.flatten(g.max_pool(x, pool));
  x = g.dropout(g.relu(g.fully_connected("fc6", x, kColumns)), 0.5F);
  x = g.dropout(g.relu(g.fully_connected("fc7", x, kRows)), 0.5F);
  g.softmax_cross_entropy(g.fully_connected("fc8", x, input.outputs()));
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
