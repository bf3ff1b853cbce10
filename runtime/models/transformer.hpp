// Transformers that continue texts: GPT-2 (Radford et al. 2019), and models of a user's own settings, of
// which Llama's form (Touvron et al. 2023) is one. Names of tensors are those of GPT-2's in Hugging Face's
// transformers where positions are learned, and Llama's where they are rotary.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/graph/graph.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::runtime {

struct Transformer {
  enum class Norm { layer, rms };
  enum class FeedForward { gelu, swiglu };
  enum class Positions { learned, rotary };
  enum class Head { tied, own };  // tied: the scores' weights are the embedding's

  std::int64_t layers = 12, heads = 12, features = 768;
  std::int64_t key_heads = 0;   // 0: as many as heads
  std::int64_t hidden = 0;      // of a feed-forward layer; 0: 4 x features, or Llama's rule for SwiGLU
  std::int64_t context = 0;     // positions at most; 0: as long as the data's sequences
  std::int64_t vocabulary = 0;  // 0: the data's
  Norm norm = Norm::layer;
  FeedForward activation = FeedForward::gelu;
  Positions positions = Positions::learned;
  Head head = Head::tied;
  Bias bias = Bias::learned;
  float attention_dropout = 0;  // of the shares of attention; `dropout` is that of the residual stream
  float dropout = 0, epsilon = 1e-5F, rotary_base = 10000;

  std::int64_t hidden_features() const;
};

/// The settings of a map {layers: 12, heads: 12, ...}; `path` is what errors call it.
Result<Transformer> read_transformer(const yaml::Node& node, const std::string& path);

/// Its graph for sequences like these, the loss at the end.
Result<Graph> build_transformer(const std::string& name, const Transformer& spec, const InputShape& input);

}  // namespace dlrun::runtime
