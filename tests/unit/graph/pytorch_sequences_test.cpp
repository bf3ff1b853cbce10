// Operators on sequences and whole transformers against PyTorch.
#include <doctest/doctest.h>

#include "pytorch_check.hpp"
#include "runtime/models/transformer.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

// An embedding, `middle`, and the loss with the embedding's weights; one token does not count.
template <class Middle>
void check_operator(std::int64_t positions, std::int64_t features, const Middle& middle) {
  const InputShape input = token_sequences(positions, 29);
  GraphBuilder g("test", input);
  Value x = g.embedding("wte", g.input(), {.features = features, .positions = positions});
  x = middle(g, x);
  g.vocabulary_loss("wte", g.linear("last", x, {.outputs = features}), {}, Weights::shared);
  const Graph graph = finished(std::move(g));
  Batch batch = random_batch(input, 3);
  if (positions > 1) batch.labels[1] = -1;
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

}  // namespace

TEST_CASE("embedding, linear and the loss over its vocabulary are PyTorch's, in several chunks too") {
  check_operator(7, 24, [](GraphBuilder&, Value x) { return x; });
  const InputShape input = token_sequences(100, 8200);  // chunks of 256 rows and of 44
  GraphBuilder g("test", input);
  const Value x = g.embedding("wte", g.input(), {.features = 8});
  g.vocabulary_loss("head", g.linear("middle", x, {.outputs = 8}), {}, Weights::own);
  const Graph graph = finished(std::move(g));
  const Batch batch = random_batch(input, 3);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::scrambled);
}

TEST_CASE("linear layers of many rows are PyTorch's") {
  for (const Bias bias : {Bias::learned, Bias::none})
    check_operator(60, 64, [&](GraphBuilder& g, Value x) {
      x = g.apply(op::Gelu{op::Gelu::Form::tanh}, {g.linear("up", x, {.outputs = 192, .bias = bias})});
      return g.linear("down", x, {.outputs = 64, .bias = bias});
    });
}

TEST_CASE("layer norm, RMS norm and SwiGLU are PyTorch's") {
  for (const std::int64_t features : {16, 21}) {
    check_operator(7, features, [&](GraphBuilder& g, Value x) {
      x = g.layer_norm("a", x);
      return g.layer_norm("b", g.linear("middle", x, {.outputs = features}), {.bias = Bias::none});
    });
    check_operator(7, features, [&](GraphBuilder& g, Value x) {
      const Value y = g.rms_norm("norm", x);
      return g.add(x, g.swiglu(g.linear("gate", y, {.outputs = features, .bias = Bias::none}),
                               g.linear("up", y, {.outputs = features})));
    });
  }
}

TEST_CASE("dropout of a sequence is PyTorch's") {
  check_operator(8, 16, [](GraphBuilder& g, Value x) { return g.add(x, g.dropout(x, 0.4F)); });
}

TEST_CASE("attention is PyTorch's: odd lengths and widths, shared keys, rotary positions") {
  const op::Attention specs[] = {{.heads = 2}, {.heads = 4, .key_heads = 2, .rotary_base = 10000}};
  for (const op::Attention& spec : specs)
    for (const auto& size : {std::pair<std::int64_t, std::int64_t>{1, 6}, {33, 16}, {150, 10}})
      check_operator(size.first, 16, [&](GraphBuilder& g, Value x) {
        return g.attention(g.linear("qkv", x, {.outputs = (spec.heads + 2 * spec.keys()) * size.second}),
                           spec);
      });
}

TEST_CASE("dropout of attention is PyTorch's, by the same mask: odd lengths, shared keys, several blocks") {
  for (const auto& size : {std::pair<std::int64_t, std::int64_t>{5, 6}, {33, 16}, {150, 10}})
    check_operator(size.first, 16, [&](GraphBuilder& g, Value x) {
      return g.attention(g.linear("qkv", x, {.outputs = 8 * size.second}),
                         {.heads = 4, .key_heads = 2, .dropout = 0.3F});
    });
}

TEST_CASE("a small GPT is PyTorch's: losses, every gradient, and three steps of SGD") {
  const InputShape input = token_sequences(24, 61);
  const Transformer spec{
      .layers = 2, .heads = 4, .features = 48, .context = 32, .attention_dropout = 0.1F, .dropout = 0.2F};
  const Graph graph = build_transformer("small", spec, input).value();
  Batch batch = random_batch(input, 4);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::initial, 3);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled, 3);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::initial, 3);
}

TEST_CASE("a small model of Llama's form is PyTorch's: losses, every gradient, and three steps of SGD") {
  const InputShape input = token_sequences(24, 61);
  const Transformer spec{.layers = 2,
                         .heads = 4,
                         .features = 48,
                         .key_heads = 2,
                         .norm = Transformer::Norm::rms,
                         .activation = Transformer::FeedForward::swiglu,
                         .positions = Transformer::Positions::rotary,
                         .head = Transformer::Head::own,
                         .bias = Bias::none};
  const Graph graph = build_transformer("small", spec, input).value();
  const Batch batch = random_batch(input, 4);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::initial, 3);
  check_against_pytorch(graph, batch, Precision::f32, kTight, Start::scrambled, 3);
  check_against_pytorch(graph, batch, Precision::bf16, kRounded, Start::initial, 3);
}
