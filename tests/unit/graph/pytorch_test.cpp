// Whole models and single operators on images against PyTorch.
#include <doctest/doctest.h>

#include "pytorch_check.hpp"
#include "runtime/graph/label_smoothing.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

template <class Middle>
void check_operator(const InputShape& input, const Middle& middle) {
  GraphBuilder g("test", input);
  Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1});
  x = middle(g, x);
  g.softmax_cross_entropy(g.fully_connected("last", x, input.classes));
  const Graph graph = finished(std::move(g));
  const Batch batch = random_batch(input, 6);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

}  // namespace

TEST_CASE("mnist-cnn is PyTorch's, loss and every gradient") {
  const Graph graph = *mnist_cnn({1, 28, 28, 10});
  Batch batch = random_batch({1, 28, 28, 10}, 8);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::initial);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::initial);
  batch.labels[3] = -1;
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::initial);
}

TEST_CASE("label smoothing is PyTorch's in training, and evaluations know none, auxiliary heads included") {
  constexpr InputShape input{3, 8, 8, 10};
  GraphBuilder g("test", input);
  const Value x = g.convolution("first", g.input(), {.filters = 8, .kernel = 3, .padding = 1});
  g.auxiliary_loss(g.fully_connected("helper", x, input.classes), 0.3F);
  g.softmax_cross_entropy(g.fully_connected("last", x, input.classes));
  Graph graph = finished(std::move(g));
  REQUIRE(smooth_labels(graph, 0.1).has_value());
  Batch batch = random_batch(input, 6);
  batch.labels[3] = -1;
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

TEST_CASE("mixed labels are PyTorch's probabilities of classes, smoothed or not, and evaluations know none") {
  constexpr InputShape input{3, 8, 8, 10};
  for (const double smoothing : {0.0, 0.1}) {
    GraphBuilder g("test", input);
    const Value x = g.convolution("first", g.input(), {.filters = 8, .kernel = 3, .padding = 1});
    g.auxiliary_loss(g.fully_connected("helper", x, input.classes), 0.3F);
    g.softmax_cross_entropy(g.fully_connected("last", x, input.classes));
    Graph graph = finished(std::move(g));
    REQUIRE(smooth_labels(graph, smoothing).has_value());
    Batch batch = random_batch(input, 6);
    batch.labels[3] = -1;
    batch.other_labels = {4, 4, 9, 1, 0, 2};
    batch.own_weights = {0.9F, 0.25F, 0.0F, 0.5F, 1.0F, 0.6F};
    check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
    check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
  }
}

TEST_CASE("labels of a loss that is no softmax are not smoothed") {
  Graph graph = *dcgan({1, 28, 28, 10});
  CHECK(smooth_labels(graph, 0.1).error().what ==
        "train.label-smoothing needs a softmax loss, which model 'dcgan' does not have");
  CHECK(check_softmax_loss(graph, "train.mixup").error().hint == "remove train.mixup");
}

TEST_CASE("resnet18-cifar is PyTorch's, loss, running statistics and every gradient") {
  const Graph graph = *resnet18_cifar({3, 32, 32, 10});
  const Batch batch = random_batch({3, 32, 32, 10}, 4);
  check_against_pytorch(graph, batch, Precision::f32, kOneReluApart, Start::initial);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::initial);
}

TEST_CASE("ResNets of basic blocks and of bottlenecks are PyTorch's, loss and every gradient") {
  constexpr InputShape input{3, 64, 64, 10};
  for (const auto build : {resnet18, resnet34, resnet50, resnet101, resnet152}) {
    const Graph graph = *build(input);
    CAPTURE(graph.model);
    check_against_pytorch(graph, random_batch(input, 4), Precision::f32, kOneReluApart, Start::initial);
  }
}

TEST_CASE("AlexNet, CaffeNet, GoogLeNet and the small convnets are PyTorch's, loss and every gradient") {
  const auto check = [](const Graph& graph, const InputShape& input) {
    CAPTURE(graph.model);
    check_against_pytorch(graph, random_batch(input, 2), Precision::f32, kOneReluApart, Start::initial);
  };
  constexpr InputShape small{3, 67, 67, 10}, middling{3, 96, 96, 10};
  check(*alexnet(small), small);
  check(*caffenet(small), small);
  check(*googlenet(middling), middling);
  check(*cifar10_convnet({3, 32, 32, 10}), {3, 32, 32, 10});
  check(*hep_cnn({3, 32, 32, 2}), {3, 32, 32, 2});
}

TEST_CASE("inception-v3 is PyTorch's, its auxiliary head included") {
  constexpr InputShape input{3, 299, 299, 10};
  check_against_pytorch(*inception_v3(input), random_batch(input, 2), Precision::f32, kOneReluApart,
                        Start::initial);
}

// Both losses, the running statistics and the gradients of a whole step: shared weights take the sum of two
// parts, the generator's loss leaves the discriminator alone and the discriminator's the generator.
TEST_CASE("dcgan is PyTorch's, both losses and every gradient of both networks") {
  for (const InputShape& input : {InputShape{3, 16, 16, 10}, {1, 28, 28, 10}, {5, 16, 16, 10}}) {
    Batch batch = random_batch(input, 6);
    check_against_pytorch(*dcgan(input), batch, Precision::f32, kTight, Start::initial);
    check_against_pytorch(*dcgan(input), batch, Precision::f32, kTight, Start::scrambled);
    // A generator's gradients were rounded on the way through both networks.
    check_against_pytorch(*dcgan(input), batch, Precision::bf16, 2 * kRounded, Start::initial);
    batch.labels[3] = -1;
    check_against_pytorch(*dcgan(input), batch, Precision::f32, kTight, Start::initial);
  }
}

TEST_CASE("cosmogan is PyTorch's, both losses and every gradient of both networks") {
  for (const InputShape& input : {InputShape{1, 32, 32, 10}, {1, 16, 16, 10}, {2, 32, 16, 10}})
    check_against_pytorch(*cosmogan(input), random_batch(input, 4), Precision::f32, kOneReluApart,
                          Start::initial);
}

TEST_CASE("dcgan of 64x64 images is PyTorch's") {
  constexpr InputShape input{3, 64, 64, 10};
  check_against_pytorch(*dcgan(input), random_batch(input, 3), Precision::f32, kOneReluApart, Start::initial);
}

TEST_CASE("convolution is PyTorch's") {
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) {
    return g.convolution("middle", x, {.filters = 32, .kernel = 5, .stride = 2, .padding = 2});
  });
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) {
    return g.relu(g.convolution("middle", x, {.filters = 16, .kernel = 1, .bias = Bias::none}));
  });
}

// Where oneDNN is fast only if they are counted up to a block; see few_channels_test.cpp.
TEST_CASE("convolution of few channels is PyTorch's, of the image and of another's output") {
  for (const std::int64_t channels : {4, 5, 9, 15}) {
    CAPTURE(channels);
    check_operator({channels, 9, 8, 5}, [&](GraphBuilder& g, Value x) {
      x = g.relu(g.convolution("narrow", x, {.filters = channels, .kernel = 1}));
      return g.convolution("middle", x, {.filters = 32, .kernel = 5, .stride = 2, .padding = 2});
    });
  }
}

TEST_CASE("transposed convolution to few channels is PyTorch's") {
  for (const std::int64_t channels : {4, 5, 9, 15}) {
    CAPTURE(channels);
    check_operator({3, 5, 4, 5}, [&](GraphBuilder& g, Value x) {
      x = g.transposed_convolution("up", x, {.filters = channels, .kernel = 4, .stride = 2, .padding = 1});
      return g.convolution("down", g.tanh(x), {.filters = 16, .kernel = 3, .stride = 2, .padding = 1});
    });
  }
}

// Padding wider than a row of outputs, which oneDNN is slow with in blocks; see plain_detour.hpp.
TEST_CASE("convolution whose window reaches over the whole map is PyTorch's, either way round") {
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{2, 2}, {4, 2}}) {
    check_operator({3, height, width, 5}, [](GraphBuilder& g, Value x) {
      x = g.convolution("down", x, {.filters = 21, .kernel = 5, .stride = 2, .padding = 2});
      return g.transposed_convolution(
          "up", g.leaky_relu(x, 0.2F),
          {.filters = 16, .kernel = 5, .stride = 2, .padding = 2, .output_padding = 1});
    });
  }
}

TEST_CASE("max pooling is PyTorch's, ties included") {
  const auto pool = [](const op::MaxPool& spec) {
    return [spec](GraphBuilder& g, Value x) { return g.max_pool(g.relu(x), spec); };  // zeros are ties
  };
  check_operator({3, 9, 8, 5}, pool({.window = 2, .stride = 2}));
  check_operator({3, 9, 8, 5}, pool({.window = 3, .stride = 2, .padding = 1}));
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) { return g.relu(g.max_pool(x, {})); });
}

TEST_CASE("convolution in groups and with oblong windows is PyTorch's") {
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) {
    x = g.relu(g.convolution("middle", x, {.filters = 32, .kernel = 3, .padding = 1, .groups = 2}));
    return g.convolution("wide", x, {.filters = 16, .kernel = 1, .kernel_width = 7, .padding_width = 3});
  });
}

TEST_CASE("pooling that keeps the far edge is PyTorch's ceil_mode") {
  check_operator({3, 10, 8, 5}, [](GraphBuilder& g, Value x) {
    return g.max_pool(g.relu(x), {.window = 3, .stride = 2, .edge = Edge::kept});
  });
  check_operator({3, 10, 8, 5}, [](GraphBuilder& g, Value x) {
    return g.average_pool(g.relu(x), {.window = 3, .stride = 2, .edge = Edge::kept});
  });
}

TEST_CASE("local response normalization is PyTorch's") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) {
    return g.local_response_norm(g.relu(x), {.size = 5, .alpha = 0.5F, .beta = 0.75F, .bias = 1});
  });
}

TEST_CASE("branches, average pooling with padding and concatenation are PyTorch's") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) {
    const Value a = g.relu(g.convolution("a", x, {.filters = 32, .kernel = 1}));
    const Value b = g.average_pool(x, {.window = 3, .stride = 1, .padding = 1});
    return g.relu(g.concat({a, b, x}));
  });
}

TEST_CASE("transposed convolution is PyTorch's") {
  check_operator({3, 5, 4, 5}, [](GraphBuilder& g, Value x) {
    x = g.transposed_convolution("middle", x, {.filters = 32, .kernel = 4, .stride = 2, .padding = 1});
    return g.transposed_convolution(
        "odd", g.leaky_relu(x, 0.2F),
        {.filters = 3, .kernel = 5, .stride = 2, .padding = 2, .output_padding = 1, .bias = Bias::none});
  });
}

TEST_CASE("leaky ReLU is PyTorch's") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) {
    return g.leaky_relu(g.batch_norm("bn", g.leaky_relu(x, 0.2F)), 0.1F);
  });
}

TEST_CASE("tanh is PyTorch's, fused") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) { return g.tanh(x); });
}

TEST_CASE("tanh is PyTorch's, alone") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) { return g.tanh(g.batch_norm("bn", x)); });
}

TEST_CASE("GELU is PyTorch's, exact and by tanh") {
  for (const op::Gelu& spec : {op::Gelu{op::Gelu::Form::erf}, op::Gelu{op::Gelu::Form::tanh}})
    check_operator({3, 6, 5, 5}, [&](GraphBuilder& g, Value x) { return g.apply(spec, {x}); });
}

TEST_CASE("sigmoid cross-entropy is PyTorch's, rows that do not count included") {
  const InputShape input{3, 6, 5, 2};
  GraphBuilder g("test", input);
  const Value x = g.relu(g.convolution("first", g.input(), {.filters = 16, .kernel = 3}));
  g.sigmoid_cross_entropy(g.fully_connected("last", x, 1), op::SigmoidCrossEntropy::Target::labels);
  Batch batch = random_batch(input, 6);
  batch.labels[2] = -1;
  const Graph graph = finished(std::move(g));
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

TEST_CASE("two losses of the same scores are PyTorch's: their gradients add up") {
  const InputShape input{3, 6, 5, 4};
  GraphBuilder g("test", input);
  const Value x = g.relu(g.convolution("first", g.input(), {.filters = 16, .kernel = 3}));
  const Value scores = g.fully_connected("last", x, input.classes);
  g.auxiliary_loss(scores, 0.25F);
  g.softmax_cross_entropy(scores);
  const Graph graph = finished(std::move(g));
  const Batch batch = random_batch(input, 6);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

TEST_CASE("average pooling is PyTorch's") {
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); });
}

TEST_CASE("fully connected is PyTorch's") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) {
    return g.relu(g.fully_connected("middle", g.flatten(x), 48));
  });
}

TEST_CASE("batch norm is PyTorch's") {
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) { return g.relu(g.batch_norm("bn", x)); });
  check_operator({3, 9, 8, 5}, [](GraphBuilder& g, Value x) { return g.batch_norm("bn", x); });
}

TEST_CASE("residual addition is PyTorch's") {
  check_operator({3, 6, 5, 5}, [](GraphBuilder& g, Value x) {
    return g.relu(
        g.add(g.batch_norm("bn", g.convolution("middle", x, {.filters = 16, .kernel = 3, .padding = 1})), x));
  });
}
