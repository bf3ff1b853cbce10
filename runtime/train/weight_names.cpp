// See weight_names.hpp.
#include "runtime/train/weight_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace dlrun::runtime {
namespace {

constexpr std::string_view kTokens = "wte.weight", kPositions = "wte.positions",
                           kTheirPositions = "wpe.weight";
constexpr std::string_view kJoined = ".self_attn.qkv_proj.";

bool has_conv1d(std::string_view name) {
  return name.starts_with("h.") && name.ends_with(".weight") &&
         (name.find(".attn.c_") != std::string_view::npos || name.find(".mlp.c_") != std::string_view::npos);
}

WeightSource apart(const std::string& name, std::size_t at) {
  WeightSource out;
  for (const char* part : {"q", "k", "v"})
    out.names.push_back(name.substr(0, at) + ".self_attn." + part + "_proj." +
                        name.substr(at + kJoined.size()));
  return out;
}

}  // namespace

WeightNaming naming_of_file(const HasTensor& has) {
  using enum WeightNaming::Of;
  for (const char* prefix : {"", "transformer."})
    if (has(prefix + std::string(kTheirPositions))) return {gpt2, prefix};
  if (has("model.layers.0.self_attn.q_proj.weight")) return {llama};
  return {};
}

WeightNaming naming_of_model(const HasTensor& has) {
  using enum WeightNaming::Of;
  if (has(std::string(kTokens)) && has(std::string(kPositions))) return {gpt2};
  if (has("model.layers.0.self_attn.qkv_proj.weight")) return {llama};
  return {};
}

WeightSource source_in(const WeightNaming& naming, const std::string& tensor) {
  if (naming.of == WeightNaming::Of::llama)
    if (const std::size_t at = tensor.find(kJoined); at != std::string::npos) return apart(tensor, at);
  if (naming.of != WeightNaming::Of::gpt2) return {{tensor}};
  if (tensor == kPositions) return {{naming.prefix + std::string(kTheirPositions)}};
  const auto order = has_conv1d(tensor) ? WeightSource::Order::turned : WeightSource::Order::as_here;
  return {{tensor.starts_with("lm_head.") ? tensor : naming.prefix + tensor}, order};
}

bool is_bystander(const std::string& name) {
  static constexpr std::array<std::string_view, 4> kEnds{"num_batches_tracked", ".attn.bias",
                                                         ".attn.masked_bias", "rotary_emb.inv_freq"};
  return std::any_of(kEnds.begin(), kEnds.end(), [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace dlrun::runtime
