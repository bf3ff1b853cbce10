// Operators on volumes: against plain loops and central differences, and against PyTorch; and what refuses
// them.
#include <doctest/doctest.h>

#include "pytorch_check.hpp"
#include "runtime/models/layer_list.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

InputShape cubes(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width) {
  InputShape out{channels, height, width, 3};
  out.depth = depth;
  return out;
}

using Middle = Value (*)(GraphBuilder&, Value);

Graph with_layer(const InputShape& input, std::int64_t filters, Middle middle) {
  GraphBuilder g("test", input);
  const Value x = g.convolution("first", g.input(), {.filters = filters, .kernel = 3, .padding = 1});
  g.softmax_cross_entropy(g.fully_connected("last", middle(g, x), input.classes));
  return finished(std::move(g));
}

struct Case {
  const char* name;
  std::int64_t filters;
  Middle middle;
};

const Case kCases[] = {
    {"convolution", 16,
     [](GraphBuilder& g, Value x) {
       return g.convolution("m", x, {.filters = 16, .kernel = 3, .padding = 1});
     }},
    {"convolution by steps of 2, without bias", 16,
     [](GraphBuilder& g, Value x) {
       return g.relu(g.convolution("m", x, {.filters = 32, .kernel = 2, .stride = 2, .bias = Bias::none}));
     }},
    {"convolution of few channels, leaky", 5,
     [](GraphBuilder& g, Value x) {
       return g.leaky_relu(g.convolution("m", x, {.filters = 7, .kernel = 3, .padding = 1}), 0.3F);
     }},
    {"convolution in groups", 16,
     [](GraphBuilder& g, Value x) {
       return g.convolution("m", x, {.filters = 16, .kernel = 3, .padding = 1, .groups = 2});
     }},
    {"max pool", 16, [](GraphBuilder& g, Value x) { return g.max_pool(x, {.window = 2, .stride = 2}); }},
    {"max pool behind a ReLU, overlapping", 16,
     [](GraphBuilder& g, Value x) {
       return g.max_pool(g.relu(x), {.window = 3, .stride = 2, .padding = 1, .edge = Edge::kept});
     }},
    {"max pool of few channels", 6,
     [](GraphBuilder& g, Value x) { return g.max_pool(x, {.window = 3, .stride = 1}); }},
    {"average pool", 16,
     [](GraphBuilder& g, Value x) { return g.average_pool(x, {.window = 2, .stride = 2}); }},
    {"average pool without its padding", 16,
     [](GraphBuilder& g, Value x) {
       return g.average_pool(x, {.window = 3, .stride = 2, .padding = 1, .counted = Padding::ignored});
     }},
    {"global average pool", 16, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); }},
    {"batch norm with a ReLU, and a sum", 16,
     [](GraphBuilder& g, Value x) { return g.add(g.relu(g.batch_norm("m", x)), x); }},
    {"flatten and a layer", 16,
     [](GraphBuilder& g, Value x) { return g.relu(g.fully_connected("m", g.flatten(x), 9)); }},
};

}  // namespace

TEST_CASE("operators on volumes are those of plain loops, and their gradients central differences") {
  const InputShape input = cubes(2, 4, 3, 5);
  const Batch batch = random_batch(input, 3);
  for (const Case& each : kCases) {
    CAPTURE(each.name);
    const Graph graph = with_layer(input, each.filters, each.middle);
    const auto engine = engine_for(graph, batch.rows());
    scramble(*engine);
    const State state = state_of(*engine);
    put(*engine, batch);
    const BatchResult ours = engine->train_batch(0, nullptr);
    const Outcome theirs = run_reference(graph, state, batch);
    CHECK(ours.loss_sum == doctest::Approx(theirs.loss_sum).epsilon(1e-5));
    for (const auto& gradient : gradients_of(*engine)) {
      CAPTURE(gradient.first);
      CHECK(distance(along_directions(gradient.second),
                     reference_gradient(graph, state, batch, gradient.first)) < 5e-4);
    }
  }
}

TEST_CASE("operators on volumes are PyTorch's, in f32 and bf16") {
  const InputShape input = cubes(3, 6, 5, 4);
  const Batch batch = random_batch(input, 4);
  for (const Case& each : kCases) {
    CAPTURE(each.name);
    const Graph graph = with_layer(input, each.filters, each.middle);
    check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
    check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
  }
}

TEST_CASE("cosmoflow is PyTorch's, loss over targets and every gradient, and has the parameters it should") {
  InputShape input{4, 16, 16, 1};
  input.depth = 16, input.targets = 3;
  const Graph graph = *cosmoflow(input);
  const Batch batch = random_batch(input, 4);
  check_against_pytorch(graph, batch, Precision::f32, kOneReluApart, Start::initial);
  input.depth = input.height = input.width = 128, input.targets = 4;
  // Of PyTorch's Conv3d(4, 32, 3), (32, 64), ... (256, 512), Linear(512 * 4**3, 128), (128, 64), (64, 4).
  CHECK(parameter_count(*cosmoflow(input)) == 8'907'556);
}

TEST_CASE("what has no form for volumes refuses them") {
  const auto refusal = [](Middle middle) {
    GraphBuilder g("test", cubes(2, 4, 4, 4));
    g.softmax_cross_entropy(g.fully_connected("last", middle(g, g.input()), 3));
    const auto graph = std::move(g).finish();
    REQUIRE_FALSE(graph.has_value());
    return graph.error().what;
  };
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.local_response_norm(x, {});
        }).find("does not take volumes, such as 2x4x4x4") != std::string::npos);
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.convolution("m", x, {.filters = 4, .kernel = 1, .kernel_width = 3, .padding_width = 1});
        }).find("windows are cubes") != std::string::npos);
  CHECK(refusal([](GraphBuilder& g, Value x) {
          return g.max_pool(x, {.window = 7, .stride = 1, .padding = 3});
        }).find("windows of at most 6, not 7") != std::string::npos);
  CHECK_FALSE(cosmoflow({3, 32, 32, 4}).has_value());
}
