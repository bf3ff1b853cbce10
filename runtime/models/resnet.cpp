// resnet18-cifar: ResNet-18 for small images: a 3x3 stem without pooling, four stages of two basic blocks
// (11.17 M parameters in 10 classes). Names are torchvision's.
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

Value convolution_and_norm(GraphBuilder& g, const std::string& convolution, const std::string& norm, Value x,
                           op::Convolution spec) {
  spec.bias = Bias::none;  // batch norm's shift does that
  return g.batch_norm(norm, g.convolution(convolution, x, spec));
}

Value basic_block(GraphBuilder& g, const std::string& name, Value in, std::int64_t filters,
                  std::int64_t stride) {
  Value x = convolution_and_norm(g, name + ".conv1", name + ".bn1", in,
                                 {.filters = filters, .kernel = 3, .stride = stride, .padding = 1});
  x = g.relu(x);
  x = convolution_and_norm(g, name + ".conv2", name + ".bn2", x,
                           {.filters = filters, .kernel = 3, .padding = 1});
  Value skip = in;
  if (g.shape(in) != g.shape(x))
    skip = convolution_and_norm(g, name + ".downsample.0", name + ".downsample.1", in,
                                {.filters = filters, .kernel = 1, .stride = stride});
  return g.relu(g.add(x, skip));
}

}  // namespace

Result<Graph> resnet18_cifar(const InputShape& input) {
  GraphBuilder g("resnet18-cifar", input);
  Value x = convolution_and_norm(g, "conv1", "bn1", g.input(), {.filters = 64, .kernel = 3, .padding = 1});
  x = g.relu(x);
  for (std::int64_t stage = 0; stage < 4; ++stage)
    for (std::int64_t block = 0; block < 2; ++block)
      x = basic_block(g, fmt::format("layer{}.{}", stage + 1, block), x, 64 << stage,
                      stage > 0 && block == 0 ? 2 : 1);
  x = g.global_average_pool(x);
  x = g.flatten(x);
  x = g.fully_connected("fc", x, input.classes);
  g.softmax_cross_entropy(x);
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
