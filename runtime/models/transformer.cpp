// Blocks of attention and feed-forward layers on a residual stream, norms before both (transformer.hpp).
#include "runtime/models/transformer.hpp"

#include <cmath>

#include "runtime/base/counted.hpp"
#include "runtime/models/models.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

namespace {

constexpr std::int64_t kMost = 1 << 20;
constexpr float kInitStd = 0.02F;

using Spec = Transformer;

// What Hugging Face's transformers calls the tensors.
struct Names {
  std::string embedding, block, first_norm, attention_in, attention_out, second_norm, up, gate, down,
      last_norm, head;
};

Names names_of(const Spec& spec) {
  if (spec.positions == Spec::Positions::learned)
    return {"wte",      "h.",         "ln_1",       "attn.c_attn", "attn.c_proj", "ln_2",
            "mlp.c_fc", "mlp.c_gate", "mlp.c_proj", "ln_f",        "lm_head"};
  return {"model.embed_tokens", "model.layers.",    "input_layernorm",
          "self_attn.qkv_proj", "self_attn.o_proj", "post_attention_layernorm",
          "mlp.up_proj",        "mlp.gate_proj",    "mlp.down_proj",
          "model.norm",         "lm_head"};
}

class Builder {
 public:
  Builder(const std::string& name, const Spec& spec, const InputShape& input)
      : spec_(spec), names_(names_of(spec)), input_(input), g_(name, input) {}

  Result<Graph> build() {
    Value x = embedding();
    for (std::int64_t number = 0; number < spec_.layers; ++number) {
      const std::string block = fmt::format("{}{}.", names_.block, number);
      x = g_.add(x, attention(block, norm(block + names_.first_norm, x)));
      x = g_.add(x, feed_forward(block, norm(block + names_.second_norm, x)));
    }
    x = norm(names_.last_norm, x);
    const op::VocabularyLoss loss{.vocabulary = spec_.vocabulary, .init_std = kInitStd};
    if (spec_.head == Spec::Head::tied)
      g_.vocabulary_loss(names_.embedding, x, loss, Weights::shared);
    else
      g_.vocabulary_loss(names_.head, x, loss, Weights::own);
    return std::move(g_).finish();
  }

 private:
  bool learns_positions() const { return spec_.positions == Spec::Positions::learned; }

  Value embedding() {
    const std::int64_t context = spec_.context == 0 ? input_.height : spec_.context;
    return dropped(g_.embedding(names_.embedding, g_.input(),
                                {.features = spec_.features,
                                 .vocabulary = spec_.vocabulary,
                                 .positions = learns_positions() ? context : 0,
                                 .init_std = kInitStd}));
  }
  Value norm(const std::string& name, Value x) {
    if (spec_.norm == Spec::Norm::rms) return g_.rms_norm(name, x, {.epsilon = spec_.epsilon});
    return g_.layer_norm(name, x, {.epsilon = spec_.epsilon, .bias = spec_.bias});
  }
  // Of what a tensor group divides.
  Value linear(const std::string& name, Value x, std::int64_t outputs) {
    return g_.linear(
        name, x, {.outputs = outputs, .bias = spec_.bias, .init_std = kInitStd, .split = SplitBy::columns});
  }
  // What ends in the residual stream: smaller, so that its sum over all layers is not. A tensor group sums
  // it.
  Value projection(const std::string& name, Value x) {
    const float init_std = kInitStd / std::sqrt(2 * static_cast<float>(spec_.layers));
    return dropped(g_.linear(
        name, x,
        {.outputs = spec_.features, .bias = spec_.bias, .init_std = init_std, .split = SplitBy::rows}));
  }
  Value dropped(Value x) { return spec_.dropout > 0 ? g_.dropout(x, spec_.dropout) : x; }

  Value attention(const std::string& block, Value x) {
    const op::Attention heads{.heads = spec_.heads,
                              .key_heads = spec_.key_heads,
                              .rotary_base = learns_positions() ? 0 : spec_.rotary_base,
                              .dropout = spec_.attention_dropout};
    const std::int64_t width = spec_.features / spec_.heads;
    x = linear(block + names_.attention_in, x, (heads.heads + 2 * heads.keys()) * width);
    return projection(block + names_.attention_out, g_.attention(x, heads));
  }
  Value feed_forward(const std::string& block, Value x) {
    const std::int64_t hidden = spec_.hidden_features();
    if (spec_.activation == Spec::FeedForward::gelu)
      return projection(block + names_.down,
                        g_.apply(op::Gelu{op::Gelu::Form::tanh}, {linear(block + names_.up, x, hidden)}));
    const Value gate = linear(block + names_.gate, x, hidden);
    return projection(block + names_.down, g_.swiglu(gate, linear(block + names_.up, x, hidden)));
  }

  Spec spec_;
  Names names_;
  InputShape input_;
  GraphBuilder g_;
};

Result<void> check_heads(const yaml::Node& node, const Spec& spec, const std::string& path) {
  const auto uneven = [&](std::int64_t whole, std::string_view of, std::int64_t parts,
                          std::string_view into) {
    return yaml::error_at(node,
                          fmt::format("{}: {} {} cannot be divided by {} {}", path, whole, of, parts, into));
  };
  if (spec.features % spec.heads != 0) return uneven(spec.features, "features", spec.heads, "heads");
  if (spec.key_heads != 0 && spec.heads % spec.key_heads != 0)
    return uneven(spec.heads, "heads", spec.key_heads, "key-heads");
  if (spec.positions == Spec::Positions::rotary && spec.features / spec.heads % 2 != 0)
    return yaml::error_at(
        node, fmt::format("{}: rotary positions need an even number, and a head has {} features", path,
                          spec.features / spec.heads));
  return {};
}

Spec gpt2_of(std::int64_t layers, std::int64_t heads, std::int64_t features) {
  return {.layers = layers, .heads = heads, .features = features, .context = 1024, .vocabulary = 50257};
}

}  // namespace

// Llama's rule: two thirds, since there is a gate too, counted up to whole 256.
std::int64_t Transformer::hidden_features() const {
  if (hidden != 0) return hidden;
  if (activation == FeedForward::gelu) return 4 * features;
  return (8 * features / 3 + 255) / 256 * 256;
}

Result<Transformer> read_transformer(const yaml::Node& node, const std::string& path) {
  static const std::vector<std::string> norms{"layer", "rms"}, activations{"gelu", "swiglu"},
      positions{"learned", "rotary"};
  yaml::Fields fields = TRY(yaml::Fields::of(node, path));
  Transformer out;
  out.layers = TRY(fields.integer_or("layers", out.layers, 1, 10'000));
  out.heads = TRY(fields.integer_or("heads", out.heads, 1, kMost));
  out.key_heads = TRY(fields.integer_or("key-heads", 0, 1, kMost));
  out.features = TRY(fields.integer_or("features", out.features, 1, kMost));
  out.hidden = TRY(fields.integer_or("hidden", 0, 1, kMost));
  out.context = TRY(fields.integer_or("context", 0, 1, 1 << 30));
  out.vocabulary = TRY(fields.integer_or("vocabulary", 0, 1, 1 << 30));
  out.norm = static_cast<Transformer::Norm>(TRY(fields.choice_or("norm", 0, norms)));
  out.activation = static_cast<Transformer::FeedForward>(TRY(fields.choice_or("activation", 0, activations)));
  out.positions = static_cast<Transformer::Positions>(TRY(fields.choice_or("positions", 0, positions)));
  out.head = TRY(fields.bool_or("tied", true)) ? Transformer::Head::tied : Transformer::Head::own;
  const bool has_bias = TRY(fields.bool_or("bias", out.norm == Transformer::Norm::layer));
  out.bias = has_bias ? Bias::learned : Bias::none;
  out.dropout = static_cast<float>(TRY(fields.number_or("dropout", 0, 0, 0.99)));
  out.attention_dropout = static_cast<float>(TRY(fields.number_or("attention-dropout", 0, 0, 0.99)));
  out.epsilon = static_cast<float>(TRY(fields.number_or("epsilon", out.epsilon, 1e-12, 1)));
  out.rotary_base = static_cast<float>(TRY(fields.number_or("rotary-base", out.rotary_base, 1, 1e9)));
  TRY(fields.finish());
  TRY(check_heads(node, out, path));
  return out;
}

Result<Graph> build_transformer(const std::string& name, const Transformer& spec, const InputShape& input) {
  if (spec.context != 0 && input.kind == SampleKind::tokens && input.height > spec.context)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("model '{}' has {}, and a sequence of the data has {}", name,
                                          counted(spec.context, "position"), input.height),
                      .hint = "use shorter sequences, or a model of more positions"});
  return Builder(name, spec, input).build();
}

Result<Graph> gpt2(const InputShape& input) {
  return build_transformer("gpt2", gpt2_of(12, 12, 768), input);
}
Result<Graph> gpt2_medium(const InputShape& input) {
  return build_transformer("gpt2-medium", gpt2_of(24, 16, 1024), input);
}
Result<Graph> gpt2_large(const InputShape& input) {
  return build_transformer("gpt2-large", gpt2_of(36, 20, 1280), input);
}
Result<Graph> gpt2_xl(const InputShape& input) {
  return build_transformer("gpt2-xl", gpt2_of(48, 25, 1600), input);
}

}  // namespace dlrun::runtime
