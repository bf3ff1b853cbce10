// Operators on sequences, forward and backward, against plain loops in double and central differences, as
// operators_test.cpp does for images: positions, features and heads that fill no vector and no block.
#include <doctest/doctest.h>

#include "fixture.hpp"

using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr std::int64_t kRows = 2;

void check(const Graph& graph, const InputShape& input, double tolerance = 2e-4) {
  const auto engine = engine_for(graph, kRows);
  scramble(*engine);
  const State state = state_of(*engine);
  Batch batch = random_batch(input, kRows);
  if (batch.labels.size() > 3) batch.labels[2] = -1;
  put(*engine, batch);
  const BatchResult evaluated = engine->evaluate_batch(), trained = engine->train_batch(0, nullptr);
  const Outcome theirs = run_reference(graph, state, batch);
  CHECK(trained.loss_sum == doctest::Approx(theirs.loss_sum).epsilon(1e-5));
  CHECK(evaluated.loss_sum == doctest::Approx(theirs.loss_sum).epsilon(1e-5));
  CHECK(trained.correct == theirs.correct);
  for (const auto& gradient : gradients_of(*engine)) {
    const std::string& name = gradient.first;
    CAPTURE(name);
    CHECK(distance(along_directions(gradient.second), reference_gradient(graph, state, batch, name)) <
          tolerance);
  }
}

// An embedding of so many features, `middle`, the loss over its own weights or the embedding's.
template <class Middle>
void check_sequence(std::int64_t positions, std::int64_t features, const Middle& middle,
                    Weights weights = Weights::own) {
  const InputShape input = token_sequences(positions, 11);
  GraphBuilder g("test", input);
  const Value x = g.embedding("wte", g.input(), {.features = features, .positions = positions + 2});
  g.vocabulary_loss(weights == Weights::own ? "head" : "wte", middle(g, x), {}, weights);
  const Graph graph = finished(std::move(g));
  CAPTURE(positions);
  CAPTURE(features);
  check(graph, input);
}

}  // namespace

TEST_CASE("embedding and vocabulary loss: own weights, shared ones, features that fill no vector") {
  for (const Weights weights : {Weights::own, Weights::shared})
    for (const std::int64_t features : {1, 7, 16, 33})
      check_sequence(
          5, features, [](GraphBuilder&, Value x) { return x; }, weights);
}

TEST_CASE("layer norm, with and without a bias, and RMS norm, beside another reader") {
  for (const std::int64_t features : {5, 16, 40}) {
    check_sequence(3, features, [](GraphBuilder& g, Value x) { return g.layer_norm("ln", x); });
    check_sequence(3, features, [](GraphBuilder& g, Value x) {
      return g.add(x, g.layer_norm("ln", x, {.epsilon = 1e-3F, .bias = Bias::none}));
    });
    check_sequence(3, features, [](GraphBuilder& g, Value x) {
      return g.add(g.rms_norm("a", x), g.rms_norm("b", g.rms_norm("c", x)));
    });
  }
}

TEST_CASE("linear, with and without a bias") {
  for (const Bias bias : {Bias::learned, Bias::none})
    check_sequence(4, 10, [&](GraphBuilder& g, Value x) {
      x = g.linear("up", x, {.outputs = 37, .bias = bias});
      return g.linear("down", g.apply(op::Gelu{op::Gelu::Form::tanh}, {x}), {.outputs = 10, .bias = bias});
    });
}

TEST_CASE("SwiGLU of two values and of one twice") {
  check_sequence(4, 10, [](GraphBuilder& g, Value x) {
    return g.swiglu(g.linear("gate", x, {.outputs = 21}), g.linear("up", x, {.outputs = 21}));
  });
  check_sequence(4, 10, [](GraphBuilder& g, Value x) { return g.swiglu(x, x); });
}

TEST_CASE("attention: one position and many, heads that fill no vector, shared keys, rotary positions") {
  const op::Attention specs[] = {{.heads = 1},
                                 {.heads = 3},
                                 {.heads = 4, .key_heads = 2},
                                 {.heads = 6, .key_heads = 1, .rotary_base = 100}};
  for (const op::Attention& spec : specs)
    for (const std::int64_t positions : {1, 7, 33})
      for (const std::int64_t width : {6, 16}) {
        CAPTURE(spec.heads);
        CAPTURE(width);
        check_sequence(positions, 8, [&](GraphBuilder& g, Value x) {
          x = g.linear("qkv", x, {.outputs = (spec.heads + 2 * spec.keys()) * width});
          return g.attention(x, spec);
        });
      }
}

TEST_CASE("attention over several blocks of queries and keys") {
  check_sequence(131, 4, [&](GraphBuilder& g, Value x) {
    x = g.linear("qkv", x, {.outputs = 3 * 20});
    return g.attention(x, {.heads = 1, .rotary_base = 10000});
  });
}

TEST_CASE("a language engine: the scores that follow a position") {
  const InputShape input = token_sequences(5, 13);
  GraphBuilder g("test", input);
  const Value x = g.embedding("wte", g.input(), {.features = 9, .positions = 5});
  g.vocabulary_loss("wte", g.rms_norm("norm", x), {}, Weights::shared);
  const Graph graph = finished(std::move(g));
  const auto engine = engine_for(graph, kRows);
  scramble(*engine);
  const Batch batch = random_batch(input, kRows);
  put(*engine, batch);
  engine->evaluate_batch();
  REQUIRE(engine->language() != nullptr);
  CHECK(engine->gan() == nullptr);
  CHECK(engine->language()->vocabulary() == 13);
  const Numbers all = run_reference(graph, state_of(*engine), batch).scores;
  std::vector<float> scores(kRows * 13);
  for (const std::int64_t position : {0, 4}) {
    REQUIRE(engine->language()->next_scores(position, scores).has_value());
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t i = 0; i < 13; ++i)
        CHECK(scores[row * 13 + i] ==
              doctest::Approx(all[(row * 5 + static_cast<std::size_t>(position)) * 13 + i]).epsilon(1e-4));
  }
  CHECK_FALSE(engine->language()->next_scores(5, scores).has_value());
}

TEST_CASE("a loss that shares an embedding's weights needs no second array of their gradient") {
  constexpr std::int64_t kWords = 8200, kFeatures = 256;
  const InputShape input = token_sequences(4, kWords);
  const auto bytes = [&](const std::string& name, Weights weights) {
    GraphBuilder g("test", input);
    const Value x = g.embedding("wte", g.input(), {.features = kFeatures});
    g.vocabulary_loss(name, g.linear("middle", x, {.outputs = kFeatures}), {}, weights);
    return static_cast<double>(engine_for(finished(std::move(g)), 1)->memory_bytes());
  };
  // Weights of its own are three such arrays: values, gradient, momentum.
  const double table = kWords * kFeatures * sizeof(float);
  CHECK(bytes("head", Weights::own) - bytes("wte", Weights::shared) > 2.8 * table);
}
