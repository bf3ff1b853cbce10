// mnist-cnn: the classic two convolutions and two fully connected layers (3.27 M parameters for 28x28 grey
// images in 10 classes; 99 % on MNIST, 92 % on Fashion-MNIST).
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

Result<Graph> mnist_cnn(const InputShape& input) {
  GraphBuilder g("mnist-cnn", input);
  Value x = g.input();
  x = g.convolution("conv1", x, {.filters = 32, .kernel = 5, .padding = 2});
  x = g.relu(x);
  x = g.max_pool(x, {.window = 2, .stride = 2});
  x = g.convolution("conv2", x, {.filters = 64, .kernel = 5, .padding = 2});
  x = g.relu(x);
  x = g.max_pool(x, {.window = 2, .stride = 2});
  x = g.flatten(x);
  x = g.fully_connected("fc1", x, 1024);
  x = g.relu(x);
  x = g.dropout(x, 0.5F);
  x = g.fully_connected("fc2", x, input.outputs());
  g.softmax_cross_entropy(x);
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
