// ResNets. Of ImageNet's form with 18, 34 (basic blocks), 50, 101 and 152 layers (bottlenecks whose stride is
// at the 3x3 convolution): a 7x7 stem and pooling before four stages. resnet18-cifar, for small images: a 3x3
// stem without pooling (11.17 M parameters in 10 classes). Names, and so checkpoints' tensors, are
// torchvision's.
#include <array>

#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

Value convolution_and_norm(GraphBuilder& g, const std::string& convolution, const std::string& norm, Value x,
                           op::Convolution spec) {
  spec.bias = Bias::none;  // batch norm's shift does that
  return g.batch_norm(norm, g.convolution(convolution, x, spec));
}

// The block's input, brought to the shape of its output where that is another.
Value shortcut(GraphBuilder& g, const std::string& name, Value in, Value out, std::int64_t stride) {
  if (g.shape(in) == g.shape(out)) return in;
  return convolution_and_norm(g, name + ".downsample.0", name + ".downsample.1", in,
                              {.filters = g.shape(out).channels, .kernel = 1, .stride = stride});
}

Value basic_block(GraphBuilder& g, const std::string& name, Value in, std::int64_t filters,
                  std::int64_t stride) {
  Value x = convolution_and_norm(g, name + ".conv1", name + ".bn1", in,
                                 {.filters = filters, .kernel = 3, .stride = stride, .padding = 1});
  x = g.relu(x);
  x = convolution_and_norm(g, name + ".conv2", name + ".bn2", x,
                           {.filters = filters, .kernel = 3, .padding = 1});
  return g.relu(g.add(x, shortcut(g, name, in, x, stride)));
}

Value bottleneck(GraphBuilder& g, const std::string& name, Value in, std::int64_t filters,
                 std::int64_t stride) {
  Value x = convolution_and_norm(g, name + ".conv1", name + ".bn1", in, {.filters = filters, .kernel = 1});
  x = convolution_and_norm(g, name + ".conv2", name + ".bn2", g.relu(x),
                           {.filters = filters, .kernel = 3, .stride = stride, .padding = 1});
  x = convolution_and_norm(g, name + ".conv3", name + ".bn3", g.relu(x),
                           {.filters = 4 * filters, .kernel = 1});
  return g.relu(g.add(x, shortcut(g, name, in, x, stride)));
}

using Block = Value (*)(GraphBuilder&, const std::string&, Value, std::int64_t, std::int64_t);

Result<Graph> stages_and_head(GraphBuilder g, Value x, Block block, const std::array<int, 4>& blocks,
                              std::int64_t classes) {
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    for (int number = 0; number < blocks[stage]; ++number)
      x = block(g, fmt::format("layer{}.{}", stage + 1, number), x, std::int64_t{64} << stage,
                stage > 0 && number == 0 ? 2 : 1);
  x = g.flatten(g.global_average_pool(x));
  g.softmax_cross_entropy(g.fully_connected("fc", x, classes));
  return std::move(g).finish();
}

Result<Graph> resnet(std::string name, const InputShape& input, Block block,
                     const std::array<int, 4>& blocks) {
  GraphBuilder g(std::move(name), input);
  const Value x = convolution_and_norm(g, "conv1", "bn1", g.input(),
                                       {.filters = 64, .kernel = 7, .stride = 2, .padding = 3});
  const Value pooled = g.max_pool(g.relu(x), {.window = 3, .stride = 2, .padding = 1});
  return stages_and_head(std::move(g), pooled, block, blocks, input.outputs());
}

}  // namespace

Result<Graph> resnet18(const InputShape& input) {
  return resnet("resnet18", input, basic_block, {2, 2, 2, 2});
}
Result<Graph> resnet34(const InputShape& input) {
  return resnet("resnet34", input, basic_block, {3, 4, 6, 3});
}
Result<Graph> resnet50(const InputShape& input) {
  return resnet("resnet50", input, bottleneck, {3, 4, 6, 3});
}
Result<Graph> resnet101(const InputShape& input) {
  return resnet("resnet101", input, bottleneck, {3, 4, 23, 3});
}
Result<Graph> resnet152(const InputShape& input) {
  return resnet("resnet152", input, bottleneck, {3, 8, 36, 3});
}

Result<Graph> resnet18_cifar(const InputShape& input) {
  GraphBuilder g("resnet18-cifar", input);
  const Value x =
      convolution_and_norm(g, "conv1", "bn1", g.input(), {.filters = 64, .kernel = 3, .padding = 1});
  const Value active = g.relu(x);
  return stages_and_head(std::move(g), active, basic_block, {2, 2, 2, 2}, input.outputs());
}

}  // namespace dlrun::runtime
