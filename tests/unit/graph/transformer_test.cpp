// Transformers as graphs: the published numbers of parameters, names of tensors, and settings that cannot be.
#include "runtime/models/transformer.hpp"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "runtime/graph/operators/traits.hpp"
#include "runtime/models/layer_list.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

Result<LayerList> read_model(const std::string& settings) {
  return read_layer_list(yaml::parse("name: mine\ntransformer: {" + settings + "}\n", "job.yaml").value(),
                         "train.model");
}

std::string refusal(const std::string& settings) {
  const auto model = read_model(settings);
  return model ? "no error" : model.error().text();
}

std::set<std::string> names_of_tensors(const Graph& graph) {
  std::set<std::string> out;
  for (const Node& node : graph.nodes)
    for (const ParameterRule& rule : parameters_of(graph, node))
      out.insert(node.name + std::string(rule.part));
  return out;
}

constexpr const char* kLlama =
    "layers: 2, heads: 4, key-heads: 2, features: 32, norm: rms, activation: swiglu, positions: rotary, "
    "tied: false";

}  // namespace

TEST_CASE("GPT-2's four sizes have the published numbers of parameters") {
  const InputShape input = token_sequences(1024, 50257);
  CHECK(parameter_count(*gpt2(input)) == 124'439'808);
  CHECK(parameter_count(*gpt2_medium(input)) == 354'823'168);
  CHECK(parameter_count(*gpt2_large(input)) == 774'030'080);
  CHECK(parameter_count(*gpt2_xl(input)) == 1'557'611'200);
  CHECK(parameter_count(*gpt2(token_sequences(64, 256))) == 124'439'808);  // of other data, too
}

TEST_CASE("Llama's 7B and Llama 3's 8B have the published numbers of parameters") {
  const auto count = [](const std::string& settings, std::int64_t vocabulary) {
    const auto graph = build_layers(read_model(settings).value(), token_sequences(128, vocabulary));
    return parameter_count(graph.value());
  };
  const std::string form = ", norm: rms, activation: swiglu, positions: rotary, tied: false";
  CHECK(count("layers: 32, heads: 32, features: 4096" + form, 32000) == 6'738'415'616);
  CHECK(count("layers: 32, heads: 32, key-heads: 8, features: 4096, hidden: 14336" + form, 128256) ==
        8'030'261'248);
}

TEST_CASE("tensors have the names of Hugging Face's") {
  const auto gpt = read_model("layers: 1, heads: 2, features: 8");
  CHECK(names_of_tensors(build_layers(gpt.value(), token_sequences(4, 11)).value()) ==
        std::set<std::string>{"wte.weight", "wte.positions", "h.0.ln_1.weight", "h.0.ln_1.bias",
                              "h.0.attn.c_attn.weight", "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight",
                              "h.0.attn.c_proj.bias", "h.0.ln_2.weight", "h.0.ln_2.bias",
                              "h.0.mlp.c_fc.weight", "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight",
                              "h.0.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"});
  const auto llama =
      names_of_tensors(build_layers(read_model(kLlama).value(), token_sequences(4, 11)).value());
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.o_proj.weight",
                           "model.layers.0.mlp.gate_proj.weight", "model.norm.weight", "lm_head.weight"})
    CHECK(llama.contains(name));
  for (const std::string& name : llama) CHECK_FALSE(name.ends_with(".bias"));
}

TEST_CASE("the first weights are GPT-2's: 0.02, and less where layers end in the residual stream") {
  const Graph graph = *gpt2(token_sequences(8, 50257));
  for (const Node& node : graph.nodes)
    for (const ParameterRule& rule : parameters_of(graph, node)) {
      const double std_dev = rule.bound / std::sqrt(3.0);
      CAPTURE(node.name);
      if (rule.part == ".bias") CHECK((rule.bound == 0 && rule.constant == 0));
      if (rule.shape.size() == 2)
        CHECK(std_dev ==
              doctest::Approx(node.name.ends_with("c_proj") ? 0.02 / std::sqrt(24.0) : 0.02).epsilon(1e-5));
    }
}

TEST_CASE("settings that cannot be are refused with their place, data that do not fit with their numbers") {
  CHECK(refusal("heads: 5, features: 32")
            .find("train.model.transformer: 32 features cannot be divided "
                  "by 5 heads") != std::string::npos);
  CHECK(refusal("heads: 6, key-heads: 4, features: 36").find("6 heads cannot be divided by 4 key-heads") !=
        std::string::npos);
  CHECK(refusal("heads: 4, features: 12, positions: rotary").find("a head has 3 features") !=
        std::string::npos);
  CHECK(refusal("heads: 4, haeds: 4").find("did you mean 'heads'?") != std::string::npos);
  CHECK(refusal("norm: batch").find("train.model.transformer.norm") != std::string::npos);
  const auto error = [](const std::string& settings, const InputShape& input) {
    const auto graph = build_layers(read_model(settings).value(), input);
    return graph ? "no error" : graph.error().text();
  };
  CHECK(error("context: 16", token_sequences(17, 11))
            .find("'mine' has 16 positions, and a sequence of the "
                  "data has 17") != std::string::npos);
  CHECK(error("context: 16, positions: rotary", token_sequences(17, 11)) ==
        error("context: 16", token_sequences(17, 11)));
  CHECK(error("vocabulary: 10", token_sequences(4, 11))
            .find("wte has a vocabulary of 10 tokens, and the data of 11") != std::string::npos);
  CHECK(error("layers: 1", {}).find("reads tokens") != std::string::npos);
  CHECK(gpt2(token_sequences(1025, 256)).error().what.find("1024 positions") != std::string::npos);
}
