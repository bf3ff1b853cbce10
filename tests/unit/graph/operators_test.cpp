// Every operator's forward and backward pass in f32 against plain loops in double and central differences. A
// fully connected layer and the loss follow the operator under test; parameters before it carry its
// backward_data to something that can be compared.
#include <cmath>

#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr std::int64_t kRows = 3;

void check_against_reference(const Graph& graph, const InputShape& input, double tolerance = 2e-4) {
  const auto engine = engine_for(graph, kRows);
  scramble(*engine);
  const State state = state_of(*engine);
  const Batch batch = random_batch(input, kRows);
  put(*engine, batch);

  const BatchResult ours = engine->train_batch(0, nullptr);
  const Outcome theirs = run_reference(graph, state, batch);
  CHECK(ours.loss_sum == doctest::Approx(theirs.loss_sum).epsilon(1e-5));
  CHECK(ours.correct == theirs.correct);
  for (const auto& gradient : gradients_of(*engine)) {
    const std::string& name = gradient.first;
    CAPTURE(name);
    CHECK(distance(along_directions(gradient.second), reference_gradient(graph, state, batch, name)) <
          tolerance);
  }
  const BatchResult evaluated = [&] {
    for (const TensorInfo& info : engine->tensors())  // as they were before training moved the statistics
      if (info.role == TensorInfo::Role::statistic) {
        const Numbers& values = state.at(info.name);
        write(*engine, info.name, {values.begin(), values.end()});
      }
    return engine->evaluate_batch();
  }();
  CHECK(evaluated.loss_sum ==
        doctest::Approx(run_reference(graph, state, batch, Norm::running).loss_sum).epsilon(1e-5));
}

// A graph: a convolution to 16 channels, `middle`, a fully connected layer, the loss.
template <class Middle>
void check_after_convolution(const InputShape& input, const Middle& middle, std::int64_t channels = 16) {
  GraphBuilder g("test", input);
  Value x = g.convolution("first", g.input(), {.filters = channels, .kernel = 3, .padding = 1});
  x = middle(g, x);
  g.softmax_cross_entropy(g.fully_connected("last", x, input.classes));
  check_against_reference(finished(std::move(g)), input);
}

}  // namespace

TEST_CASE("convolution: kernels, strides, padding, bias") {
  const InputShape input{3, 7, 6, 4};
  const op::Convolution specs[] = {
      {.filters = 16, .kernel = 3, .padding = 1},
      {.filters = 16, .kernel = 5, .padding = 2},
      {.filters = 32, .kernel = 3, .stride = 2, .padding = 1},
      {.filters = 16, .kernel = 1, .stride = 2, .bias = Bias::none},
      {.filters = 16, .kernel = 3, .bias = Bias::none},
  };
  for (const op::Convolution& spec : specs) {
    CAPTURE(spec.kernel);
    CAPTURE(spec.stride);
    check_after_convolution(input,
                            [&](GraphBuilder& g, Value x) { return g.convolution("middle", x, spec); });
  }
}

TEST_CASE("convolution: windows that are not square, and groups") {
  const InputShape input{3, 7, 9, 4};
  const op::Convolution specs[] = {
      {.filters = 16, .kernel = 1, .kernel_width = 7, .padding_width = 3},
      {.filters = 16, .kernel = 3, .padding = 1, .kernel_width = 1, .padding_width = 0},
      {.filters = 32, .kernel = 3, .padding = 1, .groups = 2},
      {.filters = 16, .kernel = 1, .bias = Bias::none, .groups = 4},
  };
  for (const op::Convolution& spec : specs) {
    CAPTURE(spec.kernel_width);
    CAPTURE(spec.groups);
    check_after_convolution(
        input, [&](GraphBuilder& g, Value x) { return g.convolution("middle", x, spec); }, 32);
  }
}

TEST_CASE("convolution of one grey channel, the first layer of mnist-cnn") {
  check_after_convolution({1, 6, 6, 3}, [](GraphBuilder& g, Value x) { return g.relu(x); });
}

TEST_CASE("convolution to a number of channels that fills no vector") {
  check_after_convolution(
      {2, 5, 5, 3}, [](GraphBuilder& g, Value x) { return g.max_pool(g.relu(x), {}); }, 5);
}

TEST_CASE("max pooling: apart, overlapping, padded, with pixels left over, with a ReLU before it") {
  const op::MaxPool specs[] = {{.window = 2, .stride = 2},
                               {.window = 3, .stride = 2, .padding = 1},
                               {.window = 3, .stride = 1, .padding = 1},
                               {.window = 2, .stride = 3}};
  for (const op::MaxPool& spec : specs) {
    CAPTURE(spec.window);
    CAPTURE(spec.stride);
    check_after_convolution({2, 7, 6, 4}, [&](GraphBuilder& g, Value x) { return g.max_pool(x, spec); });
    check_after_convolution({2, 7, 6, 4},
                            [&](GraphBuilder& g, Value x) { return g.max_pool(g.relu(x), spec); });
    check_after_convolution({2, 7, 6, 4},
                            [&](GraphBuilder& g, Value x) { return g.relu(g.max_pool(x, spec)); });
  }
}

TEST_CASE("max pooling of equal values sends the gradient to the first of them") {
  // The input alone decides: a convolution without an effect (one weight of 1) in front.
  GraphBuilder g("test", {1, 2, 2, 2});
  Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 2, .stride = 1, .padding = 1});
  x = g.max_pool(x, {.window = 3, .stride = 3});
  g.softmax_cross_entropy(g.fully_connected("last", x, 2));
  const auto engine = engine_for(finished(std::move(g)), 1);
  std::vector<float> zeros(16 * 4, 0.0F);
  write(*engine, "first.weight", zeros);  // all nine outputs are equal: the bias
  Batch batch{{1, 2, 3, 4}, {0}};
  put(*engine, batch);
  engine->train_batch(0, nullptr);
  const State gradients = gradients_of(*engine);
  const Numbers& weight = gradients.at("first.weight");
  // The first window of a padded 2x2 image sees the image's first pixel with its last weight only.
  for (std::size_t filter = 0; filter < 16; ++filter) {
    CHECK(weight[filter * 4 + 0] == 0);
    CHECK(weight[filter * 4 + 1] == 0);
    CHECK(weight[filter * 4 + 2] == 0);
    CHECK(weight[filter * 4 + 3] != 0);
  }
}

TEST_CASE("max pooling that keeps the far edge") {
  for (const op::MaxPool& spec : {op::MaxPool{.window = 3, .stride = 2, .edge = Edge::kept},
                                  op::MaxPool{.window = 3, .stride = 2, .padding = 1, .edge = Edge::kept},
                                  op::MaxPool{.window = 2, .stride = 2, .edge = Edge::kept}}) {
    CAPTURE(spec.window);
    CAPTURE(spec.padding);
    check_after_convolution({2, 9, 6, 4}, [&](GraphBuilder& g, Value x) { return g.max_pool(x, spec); });
  }
}

TEST_CASE("average pooling over windows: with and without the padding's zeros, far edge kept") {
  const op::AveragePool specs[] = {{.window = 2, .stride = 2},
                                   {.window = 3, .stride = 1, .padding = 1},
                                   {.window = 3, .stride = 2, .padding = 1, .counted = Padding::ignored},
                                   {.window = 3, .stride = 2, .edge = Edge::kept}};
  for (const op::AveragePool& spec : specs) {
    CAPTURE(spec.window);
    check_after_convolution({2, 8, 5, 4}, [&](GraphBuilder& g, Value x) { return g.average_pool(x, spec); });
    check_after_convolution(
        {2, 8, 5, 4}, [&](GraphBuilder& g, Value x) { return g.average_pool(g.relu(x), spec); }, 6);
  }
}

TEST_CASE("GELU, exact and by tanh, of an image and of a vector, and beside another reader") {
  for (const op::Gelu& spec : {op::Gelu{op::Gelu::Form::erf}, op::Gelu{op::Gelu::Form::tanh}}) {
    check_after_convolution({2, 4, 5, 3}, [&](GraphBuilder& g, Value x) { return g.apply(spec, {x}); });
    check_after_convolution({2, 4, 5, 3}, [&](GraphBuilder& g, Value x) {
      return g.apply(spec, {g.fully_connected("inner", x, 21)});
    });
    check_after_convolution({2, 4, 5, 3}, [&](GraphBuilder& g, Value x) {
      return g.add(x, g.apply(spec, {g.batch_norm("norm", x)}));
    });
  }
}

TEST_CASE("local response normalization") {
  for (const op::LocalResponseNorm& spec :
       {op::LocalResponseNorm{}, op::LocalResponseNorm{.size = 3, .alpha = 0.5F, .beta = 0.6F, .bias = 2}})
    check_after_convolution({2, 4, 5, 3},
                            [&](GraphBuilder& g, Value x) { return g.local_response_norm(g.relu(x), spec); });
}

TEST_CASE("concatenation: whole blocks of channels, odd numbers of them, one value twice") {
  for (const auto& channels : {std::pair{16, 32}, std::pair{16, 5}, std::pair{3, 4}}) {
    CAPTURE(channels.first);
    CAPTURE(channels.second);
    check_after_convolution({2, 4, 5, 3}, [&](GraphBuilder& g, Value x) {
      const Value a = g.relu(g.convolution("a", x, {.filters = channels.first, .kernel = 1}));
      const Value b = g.convolution("b", x, {.filters = channels.second, .kernel = 3, .padding = 1});
      return g.convolution("after", g.concat({a, b, x, a}), {.filters = 16, .kernel = 1});
    });
  }
}

TEST_CASE("concatenation in bf16 of channels that fill no vector leaves no trace of what lay there before") {
  const InputShape input{3, 12, 12, 7};
  GraphBuilder g("test", input);
  const Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1});
  const Value few = g.convolution("few", x, {.filters = 8, .kernel = 3, .padding = 1});
  g.softmax_cross_entropy(g.fully_connected("last", g.concat({g.detach(x), few}), input.classes));
  const auto engine = engine_for(finished(std::move(g)), 16, precisions_here().back());
  put(*engine, random_batch(input, 16));
  engine->train_batch(0, nullptr);
  for (const auto& gradient : gradients_of(*engine)) {
    CAPTURE(gradient.first);
    for (const double number : gradient.second) REQUIRE(std::isfinite(number));
  }
}

TEST_CASE("an auxiliary head's gradient counts with its weight, its loss is not reported") {
  const InputShape input{2, 4, 5, 3};
  GraphBuilder g("test", input);
  const Value x = g.relu(g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1}));
  g.auxiliary_loss(g.fully_connected("helper", g.global_average_pool(x), input.classes), 0.3F);
  g.softmax_cross_entropy(g.fully_connected("last", x, input.classes));
  check_against_reference(finished(std::move(g)), input);
}

TEST_CASE("transposed convolution: kernels, strides, padding at either end, bias, activations") {
  const op::TransposedConvolution specs[] = {
      {.filters = 16, .kernel = 4, .stride = 2, .padding = 1},
      {.filters = 16, .kernel = 4, .stride = 2, .padding = 1, .bias = Bias::none},
      {.filters = 32, .kernel = 5, .stride = 2, .padding = 2, .output_padding = 1},
      {.filters = 16, .kernel = 3, .stride = 3, .padding = 1, .output_padding = 2},
      {.filters = 16, .kernel = 3, .padding = 1},
      {.filters = 3, .kernel = 4, .stride = 2, .padding = 1},
      {.filters = 16, .kernel = 1, .stride = 2, .bias = Bias::none},
  };
  for (const op::TransposedConvolution& spec : specs) {
    CAPTURE(spec.kernel);
    CAPTURE(spec.stride);
    CAPTURE(spec.output_padding);
    const auto middle = [&](GraphBuilder& g, Value x) { return g.transposed_convolution("middle", x, spec); };
    check_after_convolution({2, 4, 3, 3}, middle);
    check_after_convolution({2, 4, 3, 3}, [&](GraphBuilder& g, Value x) { return g.relu(middle(g, x)); });
    check_after_convolution(
        {2, 4, 3, 3}, [&](GraphBuilder& g, Value x) { return g.tanh(middle(g, x)); }, 5);
    check_after_convolution({2, 4, 3, 3},
                            [&](GraphBuilder& g, Value x) { return g.leaky_relu(middle(g, x), 0.2F); });
  }
}

TEST_CASE("transposed convolution of one pixel, the first layer of a generator") {
  check_after_convolution(
      {2, 4, 3, 3},
      [](GraphBuilder& g, Value x) {
        return g.transposed_convolution("middle", g.global_average_pool(x), {.filters = 16, .kernel = 4});
      },
      16);
}

TEST_CASE("a vector seen as an image, blocks of channels or not") {
  for (const std::int64_t channels : {16, 5})
    check_after_convolution({2, 4, 3, 3}, [&](GraphBuilder& g, Value x) {
      x = g.reshape(g.fully_connected("middle", x, channels * 6), {channels, 2, 3});
      return g.convolution("after", x, {.filters = 16, .kernel = 1});
    });
}

TEST_CASE("what a fully connected layer gives is read by every operator that reads images") {
  const auto check = [](const std::string& what, const auto& after) {
    CAPTURE(what);
    check_after_convolution(
        {2, 4, 5, 3}, [&](GraphBuilder& g, Value x) { return after(g, g.fully_connected("f", x, 24), x); });
  };
  check("a sum", [](GraphBuilder& g, Value v, Value x) { return g.add(v, g.fully_connected("h", x, 24)); });
  check("a vector and its sum",
        [](GraphBuilder& g, Value v, Value) { return g.add(g.fully_connected("h", v, 24), v); });
  check("a concatenation with a mean", [](GraphBuilder& g, Value v, Value x) {
    return g.concat({v, g.global_average_pool(x)});
  });
  check("a convolution",
        [](GraphBuilder& g, Value v, Value) { return g.convolution("c", v, {.filters = 5}); });
  check("a transposed convolution", [](GraphBuilder& g, Value v, Value) {
    return g.transposed_convolution("t", v, {.filters = 16, .kernel = 2});
  });
  check("a batch norm behind a tanh",
        [](GraphBuilder& g, Value v, Value) { return g.relu(g.batch_norm("bn", g.tanh(v))); });
  check("a pooling and a response norm of one value", [](GraphBuilder& g, Value v, Value) {
    return g.add(g.max_pool(v, {.window = 1, .stride = 1}), g.local_response_norm(v, {}));
  });
}

TEST_CASE("scores that are read on are f32 for the loss, and bf16 as an image") {
  const InputShape input{2, 4, 5, 3};
  const auto graph = [&] {
    GraphBuilder g("test", input);
    const Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 3});
    const Value scores = g.fully_connected("early", x, input.classes);
    g.auxiliary_loss(scores, 0.3F);
    g.softmax_cross_entropy(g.fully_connected("last", g.batch_norm("bn", scores), input.classes));
    return finished(std::move(g));
  }();
  const Batch batch = random_batch(input, 8);
  double losses[2] = {};
  for (const Precision precision : precisions_here()) {
    const auto engine = engine_for(graph, 8, precision);
    put(*engine, batch);
    losses[precision == Precision::f32 ? 0 : 1] = engine->train_batch(0, nullptr).loss_sum;
  }
  if (precisions_here().size() == 2) CHECK(losses[0] == doctest::Approx(losses[1]).epsilon(0.02));
}

TEST_CASE("leaky ReLU and tanh: fused, behind a batch norm, and where their input has other readers") {
  const auto check = [](const auto& activation) {
    const InputShape input{2, 4, 3, 3};
    check_after_convolution(input, [&](GraphBuilder& g, Value x) { return activation(g, x); });
    check_after_convolution(input,
                            [&](GraphBuilder& g, Value x) { return activation(g, g.batch_norm("bn", x)); });
    check_after_convolution(input, [&](GraphBuilder& g, Value x) { return g.add(activation(g, x), x); });
    check_after_convolution(input, [&](GraphBuilder& g, Value x) {
      const Value y = activation(g, g.batch_norm("bn", x));
      return g.add(g.convolution("a", y, {.filters = 16}), g.add(y, g.batch_norm("bn2", y)));
    });
    check_after_convolution(
        input, [&](GraphBuilder& g, Value x) { return activation(g, g.fully_connected("middle", x, 9)); });
  };
  check([](GraphBuilder& g, Value x) { return g.leaky_relu(x, 0.2F); });
  check([](GraphBuilder& g, Value x) { return g.leaky_relu(x, 0.0F); });
  check([](GraphBuilder& g, Value x) { return g.tanh(x); });
}

TEST_CASE("sigmoid cross-entropy of a logit from a fully connected layer and from a convolution") {
  const InputShape input{2, 4, 3, 2};
  GraphBuilder full("test", input);
  Value x = full.convolution("first", full.input(), {.filters = 16, .kernel = 3});
  full.sigmoid_cross_entropy(full.fully_connected("last", x, 1), op::SigmoidCrossEntropy::Target::labels);
  check_against_reference(finished(std::move(full)), input);
  GraphBuilder convolved("test", {2, 5, 5, 2});
  x = convolved.leaky_relu(convolved.convolution("first", convolved.input(), {.filters = 16, .kernel = 3}),
                           0.2F);
  convolved.sigmoid_cross_entropy(convolved.convolution("last", x, {.filters = 1, .kernel = 3}),
                                  op::SigmoidCrossEntropy::Target::labels);
  check_against_reference(finished(std::move(convolved)), {2, 5, 5, 2});
}

TEST_CASE("global average pooling") {
  check_after_convolution({2, 4, 5, 3}, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); });
  check_after_convolution(
      {2, 4, 5, 3}, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); }, 6);
}

TEST_CASE("fully connected: on images, on vectors, with a ReLU") {
  check_after_convolution({2, 4, 3, 3},
                          [](GraphBuilder& g, Value x) { return g.fully_connected("middle", x, 9); });
  check_after_convolution({2, 4, 3, 3}, [](GraphBuilder& g, Value x) {
    return g.relu(g.fully_connected("middle", g.flatten(x), 32));
  });
}

TEST_CASE("ReLU alone, and where its input has other readers") {
  check_after_convolution({2, 4, 3, 3}, [](GraphBuilder& g, Value x) { return g.add(g.relu(x), x); });
  check_after_convolution({2, 4, 3, 3}, [](GraphBuilder& g, Value x) {
    return g.relu(g.flatten(g.max_pool(x, {.window = 2, .stride = 1})));
  });
}

TEST_CASE("dropout of nothing changes nothing") {
  check_after_convolution({2, 4, 3, 3}, [](GraphBuilder& g, Value x) { return g.dropout(g.relu(x), 0.0F); });
}

TEST_CASE("batch norm, with and without a ReLU") {
  check_after_convolution({2, 4, 5, 3}, [](GraphBuilder& g, Value x) { return g.batch_norm("bn", x); });
  check_after_convolution({2, 4, 5, 3},
                          [](GraphBuilder& g, Value x) { return g.relu(g.batch_norm("bn", x)); });
}

TEST_CASE("batch norm moves the running statistics by the unbiased variance") {
  GraphBuilder g("test", {2, 4, 5, 3});
  const Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1});
  g.softmax_cross_entropy(g.fully_connected("last", g.batch_norm("bn", x, {.momentum = 0.25F}), 3));
  const Graph graph = finished(std::move(g));
  const auto engine = engine_for(graph, kRows);
  scramble(*engine);
  const State before = state_of(*engine);
  const Batch batch = random_batch({2, 4, 5, 3}, kRows);
  put(*engine, batch);
  engine->train_batch(0, nullptr);
  const Outcome reference = run_reference(graph, before, batch);
  const State after = state_of(*engine);
  const double count = kRows * 4 * 5;
  for (std::size_t c = 0; c < 16; ++c) {
    const double mean = reference.batch_statistics.at("bn.mean")[c];
    const double variance = reference.batch_statistics.at("bn.variance")[c] * count / (count - 1);
    CHECK(after.at("bn.running_mean")[c] ==
          doctest::Approx(0.75 * before.at("bn.running_mean")[c] + 0.25 * mean).epsilon(1e-4));
    CHECK(after.at("bn.running_var")[c] ==
          doctest::Approx(0.75 * before.at("bn.running_var")[c] + 0.25 * variance).epsilon(1e-4));
  }
}

TEST_CASE("residual sums: identity, two branches, a value added to itself, sums of sums") {
  const auto branch = [](GraphBuilder& g, Value x, const char* name) {
    return g.convolution(name, x, {.filters = 16, .kernel = 3, .padding = 1});
  };
  const InputShape input{2, 4, 4, 3};
  check_after_convolution(input,
                          [&](GraphBuilder& g, Value x) { return g.relu(g.add(branch(g, x, "a"), x)); });
  check_after_convolution(input, [&](GraphBuilder& g, Value x) {
    return g.add(g.relu(branch(g, x, "a")), g.relu(branch(g, x, "b")));
  });
  check_after_convolution(input, [&](GraphBuilder& g, Value x) { return g.add(x, x); });
  check_after_convolution(input, [&](GraphBuilder& g, Value x) {
    const Value first = g.relu(g.add(branch(g, x, "a"), g.relu(x)));
    const Value second = g.relu(g.add(first, branch(g, first, "b")));
    return g.add(second, g.add(first, x));
  });
}
