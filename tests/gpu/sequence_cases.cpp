// What transformers are made of, on tokens: each operator between an embedding and the loss over its
// vocabulary.
#include <algorithm>

#include "compare.hpp"

namespace dlrun::runtime::gpu {

namespace {

const InputShape small = token_sequences(19, 41);  // 41: a vocabulary that fills no vector

// `body` turns features of each token into as many.
template <class Body>
Result<Graph> language_of(const InputShape& input, std::int64_t features, const Body& body) {
  GraphBuilder g("case", input);
  const Value tokens = g.embedding("tokens", g.input(),
                                   {.features = features,
                                    .positions = std::max<std::int64_t>(80, input.labels_per_sample()),
                                    .init_std = 0.5F});
  const Value out = body(g, tokens);
  g.use_weights(Weights::own);
  g.vocabulary_loss("scores", out, {.init_std = 0.3F}, Weights::own);
  return std::move(g).finish();
}

// As the second of three ranks has it.
Result<Graph> dropout_of_rank(const InputShape& in, SplitForm form) {
  Graph out = TRY(language_of(in, 24, [](GraphBuilder& g, Value x) {
    return g.add(x, g.dropout(g.linear("inner", x, {.outputs = 24}), 0.25F));
  }));
  for (Node& node : out.nodes)
    if (std::holds_alternative<op::Dropout>(node.operation))
      node.part = NodePart{.form = form, .part = 1, .parts = 3, .whole = node.operation, .from = node.shape};
  return out;
}

Value block(GraphBuilder& g, Value x, const op::Attention& attention, std::int64_t packed,
            std::int64_t features) {
  const Value seen = g.attention(g.linear("qkv", g.layer_norm("norm1", x), {.outputs = packed}), attention);
  x = g.add(x, g.linear("out", seen, {.outputs = features}));
  const Value inner = g.linear("up", g.layer_norm("norm2", x), {.outputs = 4 * features});
  return g.add(x, g.linear("down", g.apply(op::Gelu{op::Gelu::Form::tanh}, {inner}), {.outputs = features}));
}

// Heads of 64 features and tiles of 128 positions: what Hopper's own gradient is for, where heads are many.
Result<Graph> attention_in_tiles(const InputShape& input, std::int64_t heads) {
  return language_of(input, 24, [heads](GraphBuilder& g, Value x) {
    const Value packed = g.linear("qkv", x, {.outputs = 3 * 64 * heads});
    return g.linear("out", g.attention(packed, {.heads = heads}), {.outputs = 24});
  });
}

}  // namespace

const std::vector<Case>& sequence_cases() {
  static const std::vector<Case> all = {
      {"embedding", small,
       [](const InputShape& in) { return language_of(in, 24, [](GraphBuilder&, Value x) { return x; }); }},
      {"embedding that the loss shares", small,
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         const Value x = g.embedding("tokens", g.input(), {.features = 16, .init_std = 0.5F});
         g.vocabulary_loss("tokens", g.linear("inner", x, {.outputs = 16}), {}, Weights::shared);
         return std::move(g).finish();
       }},
      {"layer norm of odd features", small,
       [](const InputShape& in) {
         return language_of(in, 21,
                            [](GraphBuilder& g, Value x) { return g.add(x, g.layer_norm("norm", x)); });
       }},
      {"rms norm of many features", token_sequences(3, 11),
       [](const InputShape& in) {
         return language_of(in, 2304, [](GraphBuilder& g, Value x) { return g.rms_norm("norm", x); });
       }},
      {"linear without bias, shared", small,
       [](const InputShape& in) {
         return language_of(in, 24, [](GraphBuilder& g, Value x) {
           const Value once = g.linear("inner", x, {.outputs = 24, .bias = Bias::none});
           g.use_weights(Weights::shared);
           return g.linear("inner", once, {.outputs = 24, .bias = Bias::none});
         });
       }},
      {"swiglu beside another reader", small,
       [](const InputShape& in) {
         return language_of(in, 24, [](GraphBuilder& g, Value x) {
           const Value gate = g.linear("gate", x, {.outputs = 24}), up = g.linear("up", x, {.outputs = 24});
           return g.add(g.swiglu(gate, up), gate);
         });
       }},
      {"dropout of a sequence", small,
       [](const InputShape& in) {
         return language_of(in, 24, [](GraphBuilder& g, Value x) {
           return g.add(x, g.dropout(g.linear("inner", x, {.outputs = 24}), 0.25F));
         });
       }},
      {"dropout of the features that a rank of a tensor group has", small,
       [](const InputShape& in) { return dropout_of_rank(in, SplitForm::follows); }},
      {"dropout of the positions that a rank of a tensor group has", small,
       [](const InputShape& in) { return dropout_of_rank(in, SplitForm::positions); }},
      {"attention", small,
       [](const InputShape& in) {
         return language_of(in, 32, [](GraphBuilder& g, Value x) {
           return g.attention(g.linear("qkv", x, {.outputs = 96}), {.heads = 4});
         });
       }},
      {"attention with shared keys and rotary positions", token_sequences(70, 41),
       [](const InputShape& in) {
         return language_of(in, 48, [](GraphBuilder& g, Value x) {
           return g.attention(g.linear("qkv", x, {.outputs = 80}),
                              {.heads = 6, .key_heads = 2, .rotary_base = 500});
         });
       },
       1, 1e-6, 1, 3},
      {"attention in one tile of 128 positions, and three heads a block of Hopper", token_sequences(128, 41),
       [](const InputShape& in) { return attention_in_tiles(in, 20); }},
      {"attention in two tiles, and three heads a block", token_sequences(256, 41),
       [](const InputShape& in) { return attention_in_tiles(in, 18); }},
      {"attention in three tiles, and one head a block", token_sequences(384, 41),
       [](const InputShape& in) { return attention_in_tiles(in, 8); }},
      {"attention with dropout, by the same mask", token_sequences(70, 41),
       [](const InputShape& in) {
         return language_of(in, 32, [](GraphBuilder& g, Value x) {
           x = g.attention(g.linear("qkv", x, {.outputs = 64}),
                           {.heads = 4, .key_heads = 2, .dropout = 0.3F});
           return g.dropout(x, 0.1F);
         });
       },
       1, 1e-6, 1, 3},
      {"transformer block", token_sequences(16, 41),
       [](const InputShape& in) {
         return language_of(in, 32,
                            [](GraphBuilder& g, Value x) { return block(g, x, {.heads = 4}, 96, 32); });
       }},
  };
  return all;
}

}  // namespace dlrun::runtime::gpu
