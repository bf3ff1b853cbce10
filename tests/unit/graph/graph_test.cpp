// The builder's shapes and complaints, and what fuse() makes of a graph.
#include "runtime/graph/graph.hpp"

#include <doctest/doctest.h>

#include "runtime/graph/fuse.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun::runtime;

namespace {

std::string operations(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += (text.empty() ? "" : ", ") + operation_name(node.operation);
  return text;
}

std::string complaint(GraphBuilder builder) {
  const auto graph = std::move(builder).finish();
  return graph ? "" : graph.error().what;
}

}  // namespace

TEST_CASE("shapes follow kernels, strides and padding") {
  GraphBuilder g("test", {3, 32, 30, 10});
  const Value convolved =
      g.convolution("c", g.input(), {.filters = 8, .kernel = 3, .stride = 2, .padding = 1});
  CHECK(g.shape(convolved) == Shape{8, 16, 15});
  CHECK(g.shape(g.max_pool(convolved, {.window = 2, .stride = 2})) == Shape{8, 8, 7});
  CHECK(g.shape(g.global_average_pool(convolved)) == Shape{8, 1, 1});
  CHECK(g.shape(g.flatten(convolved)) == Shape{8 * 16 * 15, 1, 1});
}

TEST_CASE("the first thing that cannot be is what the builder complains of") {
  GraphBuilder sum("test", {3, 8, 8, 10});
  sum.add(sum.input(), sum.flatten(sum.input()));
  sum.dropout(sum.input(), 1.5F);
  CHECK(complaint(std::move(sum)).find("cannot add 3x8x8 and 192x1x1") != std::string::npos);

  GraphBuilder dropout("test", {3, 8, 8, 10});
  dropout.dropout(dropout.input(), 1.0F);
  CHECK(complaint(std::move(dropout)).find("a dropout probability must be in [0, 1), not 1") !=
        std::string::npos);

  GraphBuilder scores("test", {3, 8, 8, 10});
  scores.softmax_cross_entropy(scores.fully_connected("fc", scores.input(), 9));
  CHECK(complaint(std::move(scores)).find("the scores are 9x1x1, not one per class") != std::string::npos);

  GraphBuilder endless("test", {3, 8, 8, 10});
  endless.relu(endless.input());
  CHECK(complaint(std::move(endless)) == "model 'test' does not end in a loss");
}

TEST_CASE("models have as many parameters as was published") {
  const auto count = [](dlrun::Result<Graph> graph) { return parameter_count(graph.value()); };
  constexpr InputShape photo{3, 224, 224, 1000};
  CHECK(count(mnist_cnn({})) == 3274634);
  CHECK(count(cifar10_convnet({3, 32, 32, 10})) == 89578);
  CHECK(count(resnet18_cifar({3, 32, 32, 10})) == 11173962);
  CHECK(count(resnet18(photo)) == 11689512);
  CHECK(count(resnet34(photo)) == 21797672);
  CHECK(count(resnet50(photo)) == 25557032);
  CHECK(count(resnet101(photo)) == 44549160);
  CHECK(count(resnet152(photo)) == 60192808);
  CHECK(count(alexnet(photo)) == 61100840);
  CHECK(count(caffenet({3, 227, 227, 1000})) == 60965224);
  CHECK(count(googlenet(photo)) == 13378280);
  CHECK(count(inception_v3({3, 299, 299, 1000})) == 27161264);
  CHECK(count(hep_cnn({3, 224, 224, 2})) == 594178);
  CHECK(count(dcgan({3, 64, 64, 10})) == 3576704 + 2765568);  // generator and discriminator
  CHECK(count(cosmogan({1, 256, 256, 10})) == 12824449 + 4436225);
}

TEST_CASE("an image too small for a model is refused with the layer and the pixels that it sees") {
  CHECK(inception_v3({3, 64, 64, 10}).error().what.find("window") != std::string::npos);
  CHECK(alexnet({3, 32, 32, 10}).error().what.find("max pooling sees 1 pixels, less than its window of 3") !=
        std::string::npos);
}

TEST_CASE("dcgan takes what can be halved down to a few pixels, and names what it takes") {
  for (const std::int64_t size : {8, 10, 14, 16, 28, 32, 64, 128})
    CHECK(dcgan({1, size, size, 10}).has_value());
  for (const std::int64_t size : {4, 7, 18, 30, 66})
    CHECK(dcgan({1, size, size, 10}).error().what ==
          fmt::format("model 'dcgan' cannot take images of {} x {}", size, size));
  CHECK_FALSE(dcgan({1, 32, 64, 10}).has_value());
}

TEST_CASE("cosmogan takes maps whose sides are multiples of 16") {
  CHECK(cosmogan({1, 32, 48, 10}).has_value());
  CHECK(cosmogan({1, 40, 48, 10}).error().text() ==
        "model 'cosmogan' cannot take images of 40 x 48\n  hint: height and width must be multiples of 16; "
        "published are maps of 256 x 256");
}

TEST_CASE("a vector becomes an image of as many numbers, and only a fully connected layer gives one") {
  GraphBuilder g("test", {3, 8, 8, 10});
  CHECK(g.shape(g.reshape(g.fully_connected("fc", g.input(), 24), {2, 3, 4})) == Shape{2, 3, 4});
  g.reshape(g.input(), {3, 4, 16});
  CHECK(complaint(std::move(g)).find("cannot see 3x8x8 as an image of 3x4x16") != std::string::npos);
}

TEST_CASE("weights are shared with a layer of that name, kind and shape, or not at all") {
  const auto complaint_of = [](const op::Convolution& spec) {
    GraphBuilder g("test", {3, 8, 8, 2});
    const Value first = g.convolution("c", g.input(), {.filters = 1, .kernel = 8});
    g.sigmoid_cross_entropy(first, op::SigmoidCrossEntropy::Target::real);
    g.use_weights(Weights::shared);
    g.sigmoid_cross_entropy(g.convolution("c", g.input(), spec), op::SigmoidCrossEntropy::Target::fake);
    return complaint(std::move(g));
  };
  CHECK(complaint_of({.filters = 1, .kernel = 8}) == "");
  CHECK(complaint_of({.filters = 2, .kernel = 8}).find("no layer c is there to share weights with") !=
        std::string::npos);
}

TEST_CASE("a transposed convolution makes what its convolution came from") {
  GraphBuilder g("test", {3, 7, 5, 10});
  const Value up =
      g.transposed_convolution("t", g.input(), {.filters = 8, .kernel = 4, .stride = 2, .padding = 1});
  CHECK(g.shape(up) == Shape{8, 14, 10});
  const Value odd = g.transposed_convolution(
      "o", up, {.filters = 4, .kernel = 5, .stride = 2, .padding = 2, .output_padding = 1});
  CHECK(g.shape(odd) == Shape{4, 28, 20});
  g.transposed_convolution("bad", odd, {.kernel = 3, .stride = 2, .output_padding = 2});
  CHECK(complaint(std::move(g)).find("bad has an output padding of 2, not less than its stride of 2") !=
        std::string::npos);
}

TEST_CASE("leaky ReLU and tanh join convolutions, and stay behind a batch norm") {
  GraphBuilder g("test", {3, 8, 8, 2});
  Value x = g.leaky_relu(g.convolution("a", g.input(), {.filters = 8, .kernel = 3}), 0.1F);
  x = g.leaky_relu(g.batch_norm("bn", x), 0.2F);
  x = g.tanh(g.transposed_convolution("t", x, {.filters = 3, .kernel = 3}));
  g.sigmoid_cross_entropy(g.fully_connected("fc", x, 1), op::SigmoidCrossEntropy::Target::labels);
  const Graph graph = fuse(*std::move(g).finish());
  CHECK(operations(graph) ==
        "input, convolution, batch norm, leaky relu, transposed convolution, fully connected, "
        "sigmoid cross entropy");
  const auto& convolution = std::get<op::Convolution>(graph.nodes[1].operation);
  CHECK(convolution.activation == Activation::leaky_relu);
  CHECK(convolution.slope == 0.1F);
  CHECK(std::get<op::TransposedConvolution>(graph.nodes[4].operation).activation == Activation::tanh);
}

TEST_CASE("fusing leaves few passes over memory") {
  const Graph graph = fuse(*mnist_cnn({}));
  CHECK(
      operations(graph) ==
      "input, convolution, max pool, convolution, max pool, fully connected, dropout, fully connected, loss");
  CHECK(std::get<op::MaxPool>(graph.nodes[2].operation).activation == Activation::relu);
  CHECK(std::get<op::FullyConnected>(graph.nodes[5].operation).activation == Activation::relu);
  CHECK(std::get<op::FullyConnected>(graph.nodes[7].operation).activation == Activation::none);
}

TEST_CASE("a ReLU stays where its input has another reader") {
  GraphBuilder g("test", {3, 8, 8, 10});
  const Value x = g.convolution("c", g.input(), {.filters = 8, .kernel = 3, .padding = 1});
  g.softmax_cross_entropy(g.fully_connected("fc", g.add(x, g.relu(x)), 10));
  CHECK(operations(fuse(*std::move(g).finish())) == "input, convolution, relu, add, fully connected, loss");
}
