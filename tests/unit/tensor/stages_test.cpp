// The pass that cuts a model into stages: they have every parameter once, or twice where it is tied, cost
// about the same, and what cannot be cut is named.
#include "runtime/graph/stages.hpp"

#include <algorithm>
#include <map>

#include <doctest/doctest.h>

#include "runtime/graph/fuse.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/split.hpp"
#include "runtime/models/models.hpp"
#include "tensor_models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

// Of each layer, which stages have its parameters.
std::map<std::string, std::vector<int>> stages_with(const Graph& whole, int stages) {
  std::map<std::string, std::vector<int>> out;
  for (int stage = 0; stage < stages; ++stage) {
    const auto mine = cut_graph(whole, {stage, stages});
    REQUIRE_MESSAGE(mine.has_value(), mine.error().text());
    for (const Node& node : mine->nodes)
      if (traits_of(node.operation).parameters != nullptr) out[node.name].push_back(stage);
  }
  return out;
}

std::string refusal_of_cut(const Graph& whole, int stages) {
  const auto graph = cut_graph(whole, {0, stages});
  return graph ? "no error" : graph.error().text();
}

}  // namespace

TEST_CASE("each layer is in one stage, ascending, and a tied one in the first and the last") {
  for (const int stages : {2, 3, 4}) {
    CAPTURE(stages);
    for (const auto& [name, where] : stages_with(llama_like(), stages)) CHECK(where.size() == 1);
    const auto tied = stages_with(gpt_like(), stages);
    for (const auto& [name, where] : tied)
      CHECK(where == (name == "wte" ? std::vector<int>{0, stages - 1} : std::vector<int>{where.front()}));
    CHECK(cut_graph(gpt_like(), {0, stages})->stage->tied == std::vector<std::string>{"wte.weight"});
    CHECK(cut_graph(gpt_like(), {stages - 1, stages})->stage->tied == std::vector<std::string>{"wte.weight"});
  }
}

TEST_CASE("a stage knows how many dropouts are before it") {
  const Graph whole = gpt_like(40, ", dropout: 0.1");
  const auto dropouts = [](const Graph& graph) {
    return static_cast<std::size_t>(
        std::count_if(graph.nodes.begin(), graph.nodes.end(),
                      [](const Node& node) { return std::holds_alternative<op::Dropout>(node.operation); }));
  };
  const Graph first = *cut_graph(whole, {0, 2}), last = *cut_graph(whole, {1, 2});
  CHECK(first.stage->dropouts_before == 0);
  CHECK(last.stage->dropouts_before == dropouts(first));
  CHECK(dropouts(first) + dropouts(last) == dropouts(whole));
}

TEST_CASE("blocks of a large model are divided evenly, and all parts of it at the same places") {
  const Graph whole = build_model("gpt2", token_sequences(64, 50257)).value();
  const std::vector<std::size_t> cuts = places_of_cuts(fuse(whole), 2).value();
  std::size_t blocks = 0;
  for (std::size_t node = 0; node <= cuts.at(0); ++node)
    if (std::holds_alternative<op::Attention>(whole.nodes[node].operation)) ++blocks;
  CHECK(blocks >= 7);  // of 12; the loss costs as much as five of them
  CHECK(blocks <= 10);
  const auto at_first_border = [&](int part) {
    const Graph mine = *cut_graph(*split_graph(whole, {part, 2}), {1, 2});
    return mine.nodes[1].name;
  };
  CHECK(at_first_border(0) == at_first_border(1));
}

TEST_CASE("stages begin with the layers that a job names") {
  const std::vector<StageCut> cuts{{"h.1"}, {"ln_f"}};
  const Graph whole = gpt_like();
  std::map<std::string, std::vector<int>> where;
  for (int stage = 0; stage < 3; ++stage) {
    const Graph mine = cut_graph(whole, {stage, 3}, cuts).value();
    for (const Node& node : mine.nodes)
      if (traits_of(node.operation).parameters != nullptr) where[node.name].push_back(stage);
  }
  for (const auto& entry : where) {
    const std::string& name = entry.first;
    CAPTURE(name);
    const int expected = name.starts_with("h.0.") ? 0 : name.starts_with("h.") ? 1 : 2;
    CHECK(entry.second == (name == "wte" ? std::vector<int>{0, 2} : std::vector<int>{expected}));
  }
}

TEST_CASE("layers with which no stage can begin are named, with their place and those that can") {
  const Graph whole = fuse(gpt_like());
  const auto refusal = [&whole](const std::vector<StageCut>& cuts) {
    const auto places = places_of_cuts(whole, cuts);
    return places ? std::string("no error") : places.error().text();
  };
  CHECK(refusal({{"h.1", "job.yaml:9:20"}}) == "no error");
  for (const auto& [layer, said] : std::map<std::string, std::string>{
           {"h.7", "job.yaml:9:20: train.pipeline.cut: model 'mine' has no layer 'h.7'"},
           {"h.0.mlp.c_proj", "no stage can begin with layer 'h.0.mlp.c_proj'"},
           {"wte", "no stage can begin with layer 'wte'"},
           {"mlp", "has no layer 'mlp'"}}) {
    const std::string text = refusal({{layer, "job.yaml:9:20"}});
    INFO(text);
    CHECK(text.find(said) != std::string::npos);
  }
  CHECK(refusal({{"wte"}}).find("as with h, h.0.ln_2, h.1, h.1.ln_2, ln_f") != std::string::npos);
  CHECK(refusal({{"ln_f"}, {"h.1"}}).find("layer 'h.1' is not behind 'ln_f'") != std::string::npos);
}

TEST_CASE("what cannot be cut is named") {
  const std::string text =
      refusal_of_cut(model_of("[{convolution: 8, kernel: 3}, relu, {fully-connected: classes}]"), 3);
  INFO(text);
  CHECK(text.find("model 'mine' cannot be cut into 3 stages with parameters") != std::string::npos);
  CHECK(text.find("parallel.pipeline") != std::string::npos);
}
