// googlenet: the network of "Going deeper with convolutions" as Caffe has it: local response normalization,
// no batch norm, two auxiliary heads that count 0.3 each (13,378,280 parameters for 224x224 colour images in
// 1000 classes, 6,998,552 of them without the auxiliary heads).
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

constexpr op::MaxPool kHalve{.window = 3, .stride = 2, .edge = Edge::kept};

// The filters of one inception module's branches.
struct Inception {
  const char* name;
  std::int64_t one, three_reduced, three, five_reduced, five, pooled;
};

Value conv_relu(GraphBuilder& g, const std::string& name, Value x, const op::Convolution& spec) {
  return g.relu(g.convolution(name, x, spec));
}

Value inception(GraphBuilder& g, Value x, const Inception& m) {
  const std::string name = fmt::format("inception_{}.", m.name);
  const Value one = conv_relu(g, name + "1x1", x, {.filters = m.one});
  Value three = conv_relu(g, name + "3x3_reduce", x, {.filters = m.three_reduced});
  three = conv_relu(g, name + "3x3", three, {.filters = m.three, .kernel = 3, .padding = 1});
  Value five = conv_relu(g, name + "5x5_reduce", x, {.filters = m.five_reduced});
  five = conv_relu(g, name + "5x5", five, {.filters = m.five, .kernel = 5, .padding = 2});
  Value pooled = g.max_pool(x, {.window = 3, .stride = 1, .padding = 1});
  pooled = conv_relu(g, name + "pool_proj", pooled, {.filters = m.pooled});
  return g.concat({one, three, five, pooled});
}

void auxiliary(GraphBuilder& g, const std::string& name, Value x, std::int64_t classes) {
  x = g.average_pool(x, {.window = 5, .stride = 3, .edge = Edge::kept});
  x = conv_relu(g, name + ".conv", x, {.filters = 128});
  x = g.dropout(g.relu(g.fully_connected(name + ".fc", g.flatten(x), 1024)), 0.7F);
  g.auxiliary_loss(g.fully_connected(name + ".classifier", x, classes), 0.3F);
}

}  // namespace

Result<Graph> googlenet(const InputShape& input) {
  GraphBuilder g("googlenet", input);
  Value x = conv_relu(g, "conv1.7x7_s2", g.input(), {.filters = 64, .kernel = 7, .stride = 2, .padding = 3});
  x = g.local_response_norm(g.max_pool(x, kHalve), {});
  x = conv_relu(g, "conv2.3x3_reduce", x, {.filters = 64});
  x = conv_relu(g, "conv2.3x3", x, {.filters = 192, .kernel = 3, .padding = 1});
  x = g.max_pool(g.local_response_norm(x, {}), kHalve);
  x = inception(g, x, {"3a", 64, 96, 128, 16, 32, 32});
  x = inception(g, x, {"3b", 128, 128, 192, 32, 96, 64});
  x = g.max_pool(x, kHalve);
  x = inception(g, x, {"4a", 192, 96, 208, 16, 48, 64});
  auxiliary(g, "loss1", x, input.outputs());
  x = inception(g, x, {"4b", 160, 112, 224, 24, 64, 64});
  x = inception(g, x, {"4c", 128, 128, 256, 24, 64, 64});
  x = inception(g, x, {"4d", 112, 144, 288, 32, 64, 64});
  auxiliary(g, "loss2", x, input.outputs());
  x = inception(g, x, {"4e", 256, 160, 320, 32, 128, 128});
  x = g.max_pool(x, kHalve);
  x = inception(g, x, {"5a", 256, 160, 320, 32, 128, 128});
  x = inception(g, x, {"5b", 384, 192, 384, 48, 128, 128});
  x = g.dropout(g.flatten(g.global_average_pool(x)), 0.4F);
  g.softmax_cross_entropy(g.fully_connected("loss3.classifier", x, input.outputs()));
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
