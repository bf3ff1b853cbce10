// The pass that divides a model: the parts make the whole again, and what cannot be divided is named.
#include <functional>
#include <map>
#include <numeric>

#include <doctest/doctest.h>

#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/split.hpp"
#include "runtime/models/models.hpp"
#include "tensor_models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

std::size_t numbers(const std::vector<std::int64_t>& shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

// How many of the parts have each number of each tensor.
std::map<std::string, std::vector<int>> owners(const Graph& whole, int parts) {
  std::map<std::string, std::vector<int>> out;
  for (int part = 0; part < parts; ++part) {
    const Graph mine = split_graph(whole, {part, parts}).value();
    for (const Node& node : mine.nodes) {
      if (node.weights != Weights::own) continue;
      for (const ParameterRule& rule : parameters_of(mine, node)) {
        std::vector<int>& counts = out[node.name + std::string(rule.part)];
        const TensorPart all{.whole = rule.shape, .axis = 0, .ranges = {{0, rule.shape[0]}}};
        const TensorPart& of = rule.of ? *rule.of : all;
        CHECK(of.shape() == rule.shape);
        counts.resize(elements_of(of.whole));
        for_each_run(of, [&](const TensorRun& run) {
          for (std::size_t i = 0; i < run.count; ++i) ++counts[run.in_whole + i];
        });
      }
    }
  }
  return out;
}

std::string refusal(const Graph& whole, int parts, SequenceParallel sequence = SequenceParallel::off) {
  const auto graph = split_graph(whole, {0, parts, sequence});
  return graph ? "no error" : graph.error().text();
}

bool says(const std::string& text, const std::string& what) {
  INFO(text);
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("every number of a weight is in one part, or in all where the tensor is whole") {
  for (const Graph& whole : {gpt_like(), llama_like(), fully_connected_model()})
    for (const int parts : {1, 2}) {
      std::map<std::string, std::size_t> shapes;
      for (const Node& node : whole.nodes)
        if (node.weights == Weights::own)
          for (const ParameterRule& rule : parameters_of(whole, node))
            shapes[node.name + std::string(rule.part)] = numbers(rule.shape);
      const auto counted = owners(whole, parts);
      REQUIRE(counted.size() == shapes.size());
      for (const auto& entry : counted) {
        const std::vector<int>& counts = entry.second;
        CAPTURE(entry.first);
        CHECK(counts.size() == shapes.at(entry.first));
        for (const int count : counts) CHECK((count == counts[0] && (count == 1 || count == parts)));
      }
    }
}

TEST_CASE("queries, keys and values are divided each by itself") {
  const Graph graph = split_graph(llama_like(), {1, 2}).value();
  for (const Node& node : graph.nodes) {
    if (node.name != "model.layers.0.self_attn.qkv_proj") continue;
    const ParameterRule weight = parameters_of(graph, node)[0];
    CHECK(weight.of->ranges == std::vector<IndexRange>{{16, 16}, {40, 8}, {56, 8}});
    CHECK(weight.shape == std::vector<std::int64_t>{32, 32});
    CHECK(node.shape.features() == 32);
    return;
  }
  FAIL("no such layer");
}

TEST_CASE("a vocabulary with a remainder gives its first parts a token more") {
  const Graph whole = gpt_like(11);
  std::vector<std::int64_t> tokens;
  for (int part = 0; part < 4; ++part)
    tokens.push_back(std::get<op::Embedding>(split_graph(whole, {part, 4})->nodes[1].operation).vocabulary);
  CHECK(tokens == std::vector<std::int64_t>{3, 3, 3, 2});
}

TEST_CASE("AlexNet's two large layers are divided, and GPT-2 by whatever divides its 12 heads") {
  const Graph whole = alexnet({3, 224, 224, 1000}).value();
  REQUIRE(parameter_count(whole) == 61'100'840);
  CHECK(parameter_count(split_graph(whole, {0, 2}).value()) ==
        61'100'840 - 37'752'832 / 2 - std::int64_t{4096} * 4096 / 2);
  const Graph gpt = gpt2(token_sequences(16, 256)).value();
  for (const int parts : {2, 3, 4, 6, 12}) CHECK(split_graph(gpt, {parts - 1, parts}).has_value());
  CHECK(says(refusal(gpt, 8), "12 heads cannot be divided by 8"));
}

TEST_CASE("what cannot be divided is named") {
  CHECK(says(refusal(gpt_like(), 3),
             "layer h.0.attn.c_attn: 4 heads cannot be divided by 3 ranks of a tensor group"));
  CHECK(says(refusal(llama_like(), 4),
             "layer model.layers.0.self_attn.qkv_proj: 2 key-heads cannot be divided by 4"));
  CHECK(says(refusal(llama_like(34), 2), "no error"));
  CHECK(says(refusal(llama_like(33), 2), "mlp.gate_proj: 33 outputs cannot be divided by 2"));
  CHECK(says(refusal(gpt_like(3), 4), "wte: a vocabulary of 3 is less than 4"));
  CHECK(says(refusal(model_of("[{fully-connected: classes}]"), 2),
             "has no layer that a tensor group can divide"));
  CHECK(says(refusal(model_of("[{fully-connected: 8, split: columns}, relu, {fully-connected: classes}]"), 2),
             "layer layer3: it reads whole features, and what it reads is divided by 'split: columns'"));
  CHECK(says(refusal(model_of("[{fully-connected: 8, split: rows}, {fully-connected: classes}]"), 2),
             "layer layer1: 'split: rows' reads divided features, and what it reads is whole"));
}

TEST_CASE("between divided layers, a rank with sequence parallelism has its slice of the positions") {
  const Graph whole = llama_like(), part = split_graph(whole, {1, 2, SequenceParallel::on}).value();
  std::size_t norms = 0, gathers = 0, scatters = 0;
  for (const Node& node : part.nodes) {
    const bool is_norm = std::holds_alternative<op::RmsNorm>(node.operation);
    const bool is_scatter = std::holds_alternative<op::TensorScatter>(node.operation);
    if (is_norm || is_scatter || std::holds_alternative<op::Add>(node.operation))
      CHECK(node.shape.positions() == 4);  // of 8
    else if (!is_loss(node))
      CHECK(node.shape.positions() == 8);
    if (is_norm) CHECK(parameters_of(part, node)[0].shape == std::vector<std::int64_t>{32});
    norms += is_norm ? 1 : 0, scatters += is_scatter ? 1 : 0;
    gathers += std::holds_alternative<op::TensorGather>(node.operation) ? 1 : 0;
    CHECK_FALSE(std::holds_alternative<op::TensorSum>(node.operation));
    CHECK_FALSE(std::holds_alternative<op::TensorCopy>(node.operation));
  }
  CHECK(norms == 5);
  CHECK(scatters == 5);  // of the embedding, and of two layers by rows in each block
  CHECK(gathers == 5);   // of two layers by columns in each block, and of the loss
}

TEST_CASE("what sequence parallelism cannot divide is named") {
  constexpr auto kOn = SequenceParallel::on;
  CHECK(
      says(refusal(fully_connected_model(), 2, kOn),
           "parallel.sequence is on, and model 'mine' has no sequences that are summed over a tensor group"));
  const Graph seven = graph_of("transformer: {layers: 1, heads: 2, features: 8}", token_sequences(7, 40));
  CHECK(says(refusal(seven, 2), "no error"));
  CHECK(says(refusal(seven, 2, kOn),
             "sequences of 7 positions cannot be divided by 2 ranks of a tensor group"));
  const Graph whole_heads = graph_of(
      "loss: vocabulary\nlayers: [{embedding: 8}, {linear: 24}, {attention: 2}, {linear: 8, split: columns}, "
      "gelu, "
      "{linear: 8, split: rows}]",
      token_sequences(8, 40));
  CHECK(says(refusal(whole_heads, 2), "no error"));
  CHECK(says(refusal(whole_heads, 2, kOn), "layer attention: it reads all positions of a sequence"));
}
