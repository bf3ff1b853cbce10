// inception-v3: as torchvision has it, names included, with the auxiliary head, which counts 0.4 (27,161,264
// parameters for 299x299 colour images in 1000 classes).
#include "runtime/models/models.hpp"

namespace dlrun::runtime {

namespace {

// A convolution without bias, batch norm and ReLU.
Value conv_norm_relu(GraphBuilder& g, const std::string& name, Value x, op::Convolution spec) {
  spec.bias = Bias::none;
  return g.relu(g.batch_norm(name + ".bn", g.convolution(name + ".conv", x, spec), {.epsilon = 1e-3F}));
}

op::Convolution square(std::int64_t filters, std::int64_t kernel, std::int64_t padding = 0,
                       std::int64_t stride = 1) {
  return {.filters = filters, .kernel = kernel, .stride = stride, .padding = padding};
}
op::Convolution wide(std::int64_t filters, std::int64_t width) {  // 1 x width
  return {.filters = filters, .kernel = 1, .kernel_width = width, .padding_width = width / 2};
}
op::Convolution tall(std::int64_t filters, std::int64_t height) {  // height x 1
  return {.filters = filters, .kernel = height, .padding = height / 2, .kernel_width = 1, .padding_width = 0};
}

Value mean3(GraphBuilder& g, Value x) {
  return g.average_pool(x, {.window = 3, .stride = 1, .padding = 1});
}

Value block_a(GraphBuilder& g, const std::string& name, Value x, std::int64_t pooled) {
  const Value one = conv_norm_relu(g, name + ".branch1x1", x, square(64, 1));
  Value five = conv_norm_relu(g, name + ".branch5x5_1", x, square(48, 1));
  five = conv_norm_relu(g, name + ".branch5x5_2", five, square(64, 5, 2));
  Value three = conv_norm_relu(g, name + ".branch3x3dbl_1", x, square(64, 1));
  three = conv_norm_relu(g, name + ".branch3x3dbl_2", three, square(96, 3, 1));
  three = conv_norm_relu(g, name + ".branch3x3dbl_3", three, square(96, 3, 1));
  const Value pool = conv_norm_relu(g, name + ".branch_pool", mean3(g, x), square(pooled, 1));
  return g.concat({one, five, three, pool});
}

Value block_b(GraphBuilder& g, const std::string& name, Value x) {
  const Value three = conv_norm_relu(g, name + ".branch3x3", x, square(384, 3, 0, 2));
  Value twice = conv_norm_relu(g, name + ".branch3x3dbl_1", x, square(64, 1));
  twice = conv_norm_relu(g, name + ".branch3x3dbl_2", twice, square(96, 3, 1));
  twice = conv_norm_relu(g, name + ".branch3x3dbl_3", twice, square(96, 3, 0, 2));
  return g.concat({three, twice, g.max_pool(x, {.window = 3, .stride = 2})});
}

Value block_c(GraphBuilder& g, const std::string& name, Value x, std::int64_t filters) {
  const Value one = conv_norm_relu(g, name + ".branch1x1", x, square(192, 1));
  Value seven = conv_norm_relu(g, name + ".branch7x7_1", x, square(filters, 1));
  seven = conv_norm_relu(g, name + ".branch7x7_2", seven, wide(filters, 7));
  seven = conv_norm_relu(g, name + ".branch7x7_3", seven, tall(192, 7));
  Value twice = conv_norm_relu(g, name + ".branch7x7dbl_1", x, square(filters, 1));
  twice = conv_norm_relu(g, name + ".branch7x7dbl_2", twice, tall(filters, 7));
  twice = conv_norm_relu(g, name + ".branch7x7dbl_3", twice, wide(filters, 7));
  twice = conv_norm_relu(g, name + ".branch7x7dbl_4", twice, tall(filters, 7));
  twice = conv_norm_relu(g, name + ".branch7x7dbl_5", twice, wide(192, 7));
  const Value pool = conv_norm_relu(g, name + ".branch_pool", mean3(g, x), square(192, 1));
  return g.concat({one, seven, twice, pool});
}

Value block_d(GraphBuilder& g, const std::string& name, Value x) {
  Value three = conv_norm_relu(g, name + ".branch3x3_1", x, square(192, 1));
  three = conv_norm_relu(g, name + ".branch3x3_2", three, square(320, 3, 0, 2));
  Value seven = conv_norm_relu(g, name + ".branch7x7x3_1", x, square(192, 1));
  seven = conv_norm_relu(g, name + ".branch7x7x3_2", seven, wide(192, 7));
  seven = conv_norm_relu(g, name + ".branch7x7x3_3", seven, tall(192, 7));
  seven = conv_norm_relu(g, name + ".branch7x7x3_4", seven, square(192, 3, 0, 2));
  return g.concat({three, seven, g.max_pool(x, {.window = 3, .stride = 2})});
}

Value block_e(GraphBuilder& g, const std::string& name, Value x) {
  const Value one = conv_norm_relu(g, name + ".branch1x1", x, square(320, 1));
  const Value three = conv_norm_relu(g, name + ".branch3x3_1", x, square(384, 1));
  const Value three_a = conv_norm_relu(g, name + ".branch3x3_2a", three, wide(384, 3));
  const Value three_b = conv_norm_relu(g, name + ".branch3x3_2b", three, tall(384, 3));
  Value twice = conv_norm_relu(g, name + ".branch3x3dbl_1", x, square(448, 1));
  twice = conv_norm_relu(g, name + ".branch3x3dbl_2", twice, square(384, 3, 1));
  const Value twice_a = conv_norm_relu(g, name + ".branch3x3dbl_3a", twice, wide(384, 3));
  const Value twice_b = conv_norm_relu(g, name + ".branch3x3dbl_3b", twice, tall(384, 3));
  const Value pool = conv_norm_relu(g, name + ".branch_pool", mean3(g, x), square(192, 1));
  return g.concat({one, three_a, three_b, twice_a, twice_b, pool});
}

void auxiliary_head(GraphBuilder& g, Value x, std::int64_t classes) {
  x = g.average_pool(x, {.window = 5, .stride = 3});
  x = conv_norm_relu(g, "AuxLogits.conv0", x, square(128, 1));
  x = conv_norm_relu(g, "AuxLogits.conv1", x, square(768, 5));
  x = g.flatten(g.global_average_pool(x));
  g.auxiliary_loss(g.fully_connected("AuxLogits.fc", x, classes), 0.4F);
}

}  // namespace

Result<Graph> inception_v3(const InputShape& input) {
  GraphBuilder g("inception-v3", input);
  Value x = conv_norm_relu(g, "Conv2d_1a_3x3", g.input(), square(32, 3, 0, 2));
  x = conv_norm_relu(g, "Conv2d_2a_3x3", x, square(32, 3));
  x = conv_norm_relu(g, "Conv2d_2b_3x3", x, square(64, 3, 1));
  x = g.max_pool(x, {.window = 3, .stride = 2});
  x = conv_norm_relu(g, "Conv2d_3b_1x1", x, square(80, 1));
  x = conv_norm_relu(g, "Conv2d_4a_3x3", x, square(192, 3));
  x = g.max_pool(x, {.window = 3, .stride = 2});
  x = block_a(g, "Mixed_5b", x, 32);
  x = block_a(g, "Mixed_5c", x, 64);
  x = block_a(g, "Mixed_5d", x, 64);
  x = block_b(g, "Mixed_6a", x);
  for (const auto& [name, filters] :
       {std::pair{"Mixed_6b", 128}, {"Mixed_6c", 160}, {"Mixed_6d", 160}, {"Mixed_6e", 192}})
    x = block_c(g, name, x, filters);
  auxiliary_head(g, x, input.outputs());
  x = block_d(g, "Mixed_7a", x);
  x = block_e(g, "Mixed_7b", x);
  x = block_e(g, "Mixed_7c", x);
  x = g.flatten(g.dropout(g.global_average_pool(x), 0.5F));
  g.softmax_cross_entropy(g.fully_connected("fc", x, input.outputs()));
  return std::move(g).finish();
}

}  // namespace dlrun::runtime
