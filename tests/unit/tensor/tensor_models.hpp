// Small models that tensor groups divide: of GPT-2's form, of Llama's, and a list of layers.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "runtime/graph/target_measure.hpp"
#include "runtime/models/layer_list.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::runtime::test {

inline Graph graph_of(const std::string& settings, const InputShape& input) {
  const auto list =
      read_layer_list(yaml::parse("name: mine\n" + settings + "\n", "job.yaml").value(), "train.model");
  INFO((list ? std::string() : list.error().text()));
  REQUIRE(list.has_value());
  const auto graph = build_layers(*list, input);
  INFO((graph ? std::string() : graph.error().text()));
  REQUIRE(graph.has_value());
  return *graph;
}

inline constexpr InputShape kPixels{3, 4, 4, 5};
inline constexpr InputShape kWithTargets{3, 4, 4, 1, SampleKind::image, 0, 3};

inline Graph model_of(const std::string& layers) {
  return graph_of("layers: " + layers, kPixels);
}

inline Graph gpt_like(std::int64_t vocabulary = 40, const std::string& more = "") {
  return graph_of("transformer: {layers: 2, heads: 4, features: 32" + more + "}",
                  token_sequences(8, vocabulary));
}

inline Graph llama_like(std::int64_t hidden = 48, std::int64_t vocabulary = 40) {
  return graph_of(
      "transformer: {layers: 2, heads: 4, key-heads: 2, features: 32, norm: rms, activation: swiglu, "
      "positions: rotary, tied: false, hidden: " +
          std::to_string(hidden) + "}",
      token_sequences(8, vocabulary));
}

inline Graph fully_connected_model() {
  return model_of(
      "[{convolution: 8, kernel: 3}, relu, {dropout: 0.3}, {fully-connected: 24, split: columns}, relu, "
      "{dropout: 0.5}, {fully-connected: 12, split: rows}, relu, {fully-connected: classes}]");
}

inline Graph target_model(const std::string& measure) {
  Graph out = graph_of(
      "layers: [{fully-connected: 24, split: columns}, relu, {fully-connected: 12, split: rows}, relu, "
      "{fully-connected: classes}]",
      kWithTargets);
  set_measure(out, TargetMeasure::of_text(measure).value());
  return out;
}

}  // namespace dlrun::runtime::test
