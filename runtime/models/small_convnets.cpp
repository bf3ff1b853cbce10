// cifar10-convnet: the convolutional net of Caffe's CIFAR-10 example ("full": 89,578 parameters). hep-cnn:
// the classifier of collision images of high-energy physics, five layers of 128 filters (594,178 parameters
// for 224x224 images of three channels in two classes).
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

Result<Graph> cifar10_convnet(const InputShape& input) {
  GraphBuilder g("cifar10-convnet", input);
  constexpr op::LocalResponseNorm norm{.size = 3, .alpha = 5e-5F};
  constexpr op::AveragePool mean{.window = 3, .stride = 2, .edge = Edge::kept};
  Value x = g.convolution("conv1", g.input(), {.filters = 32, .kernel = 5, .padding = 2});
  x = g.relu(g.max_pool(x, {.window = 3, .stride = 2, .edge = Edge::kept}));
  x = g.local_response_norm(x, norm);
  x = g.relu(g.convolution("conv2", x, {.filters = 32, .kernel = 5, .padding = 2}));
  x = g.local_response_norm(g.average_pool(x, mean), norm);
  x = g.relu(g.convolution("conv3", x, {.filters = 64, .kernel = 5, .padding = 2}));
  x = g.flatten(g.average_pool(x, mean));
  g.softmax_cross_entropy(g.fully_connected("ip1", x, input.outputs()));
  return std::move(g).finish();
}

Result<Graph> hep_cnn(const InputShape& input) {
  GraphBuilder g("hep-cnn", input);
  Value x = g.input();
  for (int layer = 1; layer <= 5; ++layer) {
    x = g.relu(g.convolution(fmt::format("conv{}", layer), x, {.filters = 128, .kernel = 3, .padding = 1}));
    x = layer < 5 ? g.max_pool(x, {.window = 2, .stride = 2}) : g.global_average_pool(x);
  }
  g.softmax_cross_entropy(g.fully_connected("fc", g.flatten(x), input.outputs()));
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
