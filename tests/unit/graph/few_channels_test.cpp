// Images of few channels: oneDNN has fast loops for 1 to 3 of them and for 16, and between these only where
// the channels are counted up to a whole block. Nobody but the loops may see that count.
#include <algorithm>
#include <functional>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

void check_compiled(const Graph& graph) {
  for (const Precision precision : precisions_here()) {
    CAPTURE(graph.model);
    CAPTURE(precision == Precision::bf16);
    for (const OperatorTime& line : engine_for(graph, 2, precision)->profile_step(0)) {
      if (line.operations == 0) continue;
      CAPTURE(line.name);
      if (can_compute(Precision::bf16))  // with AVX2 some f32 passes have no other loops
        CHECK(line.description.find("ref") == std::string::npos);
    }
  }
}

// Narrow in the middle, too: both ways round, with an activation before and a norm behind.
Graph bottleneck(std::int64_t channels) {
  GraphBuilder g("bottleneck", {3, 16, 16, 5});
  Value x = g.relu(g.convolution("down", g.input(), {.filters = channels, .kernel = 3, .padding = 1}));
  x = g.batch_norm("norm", g.convolution("up", x, {.filters = 32, .kernel = 3, .padding = 1}));
  x = g.transposed_convolution("wide", x, {.filters = channels, .kernel = 4, .stride = 2, .padding = 1});
  x = g.convolution("last", g.tanh(x), {.filters = 16, .kernel = 5, .stride = 2, .padding = 2});
  g.softmax_cross_entropy(g.fully_connected("scores", x, 5));
  return finished(std::move(g));
}

}  // namespace

TEST_CASE("no convolution of 1 to 17 channels is left to oneDNN's reference loops, whichever way round") {
  for (std::int64_t channels = 1; channels <= 17; ++channels) {
    CAPTURE(channels);
    check_compiled(*cifar10_convnet({channels, 32, 32, 10}));
    check_compiled(*dcgan({channels, 16, 16, 10}));
    check_compiled(bottleneck(channels));
  }
}

TEST_CASE("nor is one whose windows reach over the whole map: those of cosmogan's smallest maps") {
  for (const InputShape& maps : {InputShape{1, 16, 16, 10}, {1, 32, 16, 10}, {1, 16, 32, 10}})
    check_compiled(*cosmogan(maps));
}

TEST_CASE("weights over five channels are five channels' to whoever reads them, and stay what was written") {
  const auto engine = engine_for(*cifar10_convnet({5, 32, 32, 10}), 2);
  put(*engine, random_batch({5, 32, 32, 10}, 2));
  const TensorInfo& first = engine->tensors()[0];
  CHECK(first.shape == std::vector<std::int64_t>{32, 5, 5, 5});
  const auto wanted = random_numbers(first.elements(), 7);
  write(*engine, first.name, wanted);
  CHECK(read(*engine, first.name) == wanted);
}

TEST_CASE("a restart of a training over few channels has the same bits") {
  for (const Graph& graph : {*cifar10_convnet({5, 32, 32, 10}), bottleneck(5)}) {
    const Shape& image = graph.nodes[0].shape;
    const EngineOptions options{.batch = 4, .optimizer = momentum_sgd(0.9)};
    const auto whole = compile(graph, options).value(), resumed = compile(graph, options).value();
    const auto steps = [&](Engine& engine, std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t step = from; step < to; ++step) {
        put(engine, random_batch({image.channels, image.height, image.width, 5}, 4, step));
        engine.train_batch(step, nullptr);
        engine.apply({.learning_rate = 0.05F});
      }
    };
    steps(*whole, 0, 3);
    for (const TensorInfo& info : whole->tensors()) write(*resumed, info.name, read(*whole, info.name));
    steps(*whole, 3, 6);
    steps(*resumed, 3, 6);
    for (const TensorInfo& info : whole->tensors()) {
      CAPTURE(info.name);
      CHECK(read(*whole, info.name) == read(*resumed, info.name));
    }
  }
}

// What would be left there is multiplied with what the producer of the input left in its own lanes.
TEST_CASE("no operator leaves anything beyond its last channel that reaches the weights behind it") {
  const auto nonzero = [](std::span<const float> values) {
    return std::count_if(values.begin(), values.end(), [](float value) { return value != 0; });
  };
  const std::vector<std::function<Value(GraphBuilder&, Value)>> producers = {
      [](GraphBuilder& g, Value x) { return g.batch_norm("norm", x); },
      [](GraphBuilder& g, Value x) { return g.relu(g.batch_norm("norm", x)); },
      [](GraphBuilder& g, Value x) { return g.add(g.batch_norm("norm", x), x); },
      [](GraphBuilder& g, Value x) { return g.leaky_relu(x, 0.2F); },
      [](GraphBuilder& g, Value x) { return g.tanh(g.batch_norm("norm", x)); },
      [](GraphBuilder& g, Value x) { return g.dropout(x, 0.5F); },
      [](GraphBuilder& g, Value x) { return g.max_pool(x, {.window = 3, .stride = 2, .padding = 1}); },
      [](GraphBuilder& g, Value x) { return g.average_pool(x, {.window = 3, .stride = 1, .padding = 1}); },
      [](GraphBuilder& g, Value x) { return g.local_response_norm(x, {.size = 5}); },
      [](GraphBuilder& g, Value x) {
        return g.concat({x, g.convolution("b", x, {.filters = 4, .kernel = 1})});
      },
      [](GraphBuilder& g, Value x) { return g.transposed_convolution("t", x, {.filters = 5, .kernel = 3}); },
      [](GraphBuilder& g, Value x) {
        return g.reshape(g.fully_connected("f", x, 5 * 64), {5, 8, 8});
      }};
  for (std::size_t which = 0; which < producers.size(); ++which) {
    CAPTURE(which);
    GraphBuilder g("producer", {5, 8, 8, 5});
    Value x = g.convolution("first", g.input(), {.filters = 5, .kernel = 3, .padding = 1});
    x = g.convolution("behind", producers[which](g, x), {.filters = 16, .kernel = 3, .padding = 1});
    g.softmax_cross_entropy(g.fully_connected("scores", x, 5));
    const auto engine = engine_for(finished(std::move(g)), 4);
    scramble(*engine);
    put(*engine, random_batch({5, 8, 8, 5}, 4));
    engine->train_batch(0, nullptr);
    const std::size_t floats = engine->gradients().size() - engine->spare_slots().size();
    const auto in_arena = nonzero(engine->gradients().first(floats));
    std::ptrdiff_t seen = 0;
    for (const auto& [name, gradient] : gradients_of(*engine))
      seen += std::count_if(gradient.begin(), gradient.end(), [](double value) { return value != 0; });
    CHECK(seen > 0);
    CHECK(in_arena == seen);
  }
}
