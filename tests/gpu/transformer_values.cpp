// transformer-values cuda|cpu f32|bf16 gpt|llama LAYERS HEADS KEY_HEADS FEATURES VOCABULARY LENGTH BATCH FILE
// What a small transformer computes, for transformer_test.py to compare with PyTorch: its first parameters,
// tokens and labels, the losses of three steps, and what each parameter lost in the first update by plain
// gradients, as f32 in a safetensors file. With STEPS behind FILE it times so many steps instead, and tells
// the milliseconds of each operator.
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/core.h>

#include "runtime/base/keyed_random.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/cuda/cuda_engine.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

struct Target {
  std::string device, precision, form;
  std::int64_t layers, heads, key_heads, features, vocabulary, length, batch;
  std::string file;
  std::uint64_t steps;
};

std::int64_t number(const char* text) {
  return std::stoll(text);
}

Target read(char** arguments, int count) {
  Target out{arguments[1],         arguments[2],          arguments[3],         number(arguments[4]),
             number(arguments[5]), number(arguments[6]),  number(arguments[7]), number(arguments[8]),
             number(arguments[9]), number(arguments[10]), arguments[11],        0};
  if (count > 12) out.steps = static_cast<std::uint64_t>(number(arguments[12]));
  return out;
}

Value feed_forward(GraphBuilder& g, const std::string& name, Value x, const Target& of) {
  const op::Linear up{.outputs = 4 * of.features, .init_std = 0.02F},
      down{.outputs = of.features, .init_std = 0.02F};
  if (of.form == "gpt")
    return g.linear(name + ".down", g.apply(op::Gelu{op::Gelu::Form::tanh}, {g.linear(name + ".up", x, up)}),
                    down);
  const op::Linear plain_up{.outputs = 2 * of.features, .bias = Bias::none, .init_std = 0.02F},
      plain_down{.outputs = of.features, .bias = Bias::none, .init_std = 0.02F};
  const Value gate = g.linear(name + ".gate", x, plain_up);
  return g.linear(name + ".down", g.swiglu(gate, g.linear(name + ".up", x, plain_up)), plain_down);
}

Value normed(GraphBuilder& g, const std::string& name, Value x, const Target& of) {
  return of.form == "gpt" ? g.layer_norm(name, x) : g.rms_norm(name, x);
}

Result<Graph> build(const Target& of) {
  GraphBuilder g(of.form, token_sequences(of.length, of.vocabulary));
  const bool gpt = of.form == "gpt";
  const Bias bias = gpt ? Bias::learned : Bias::none;
  Value x = g.embedding("tokens", g.input(), {.features = of.features, .positions = gpt ? of.length : 0});
  const std::int64_t packed = of.features / of.heads * (of.heads + 2 * of.key_heads);
  for (std::int64_t layer = 0; layer < of.layers; ++layer) {
    const std::string name = fmt::format("layer{}", layer);
    const Value packs = g.linear(name + ".qkv", normed(g, name + ".norm1", x, of),
                                 {.outputs = packed, .bias = bias, .init_std = 0.02F});
    const Value seen = g.attention(
        packs, {.heads = of.heads, .key_heads = of.key_heads, .rotary_base = gpt ? 0.0F : 10000.0F});
    x = g.add(x, g.linear(name + ".out", seen, {.outputs = of.features, .bias = bias, .init_std = 0.02F}));
    x = g.add(x, feed_forward(g, name, normed(g, name + ".norm2", x, of), of));
  }
  g.vocabulary_loss(gpt ? "tokens" : "scores", normed(g, "norm", x, of), {},
                    gpt ? Weights::shared : Weights::own);
  return std::move(g).finish();
}

Result<std::unique_ptr<Engine>> make_engine(const Target& of) {
  const EngineOptions options{.batch = of.batch,
                              .precision = of.precision == "f32" ? Precision::f32 : Precision::bf16,
                              .optimizer = of.steps > 0 ? default_optimizer("adam") : momentum_sgd(0)};
  Graph graph = TRY(build(of));
  if (of.device == "cpu") return std::unique_ptr<Engine>(TRY(compile(std::move(graph), options)));
  return std::unique_ptr<Engine>(TRY(compile_cuda(TRY(CudaLibrary::open()), std::move(graph), options, 0)));
}

void fill(Engine& engine, const Target& of) {
  const auto tokens = engine.tokens(), labels = engine.labels();
  const auto token = [&](std::size_t place) {
    return static_cast<std::int32_t>(below(mix(7, place), static_cast<std::uint64_t>(of.vocabulary)));
  };
  const auto length = static_cast<std::size_t>(of.length);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t place = i / length * (length + 1) + i % length;
    tokens[i] = token(place), labels[i] = token(place + 1);
  }
}

struct Kept {
  StoredTensor info;
  std::vector<float> values;
};

Result<void> keep(std::vector<Kept>& all, const Engine& engine, const std::string& prefix) {
  for (std::size_t index = 0; index < engine.tensors().size(); ++index) {
    const TensorInfo& info = engine.tensors()[index];
    std::vector<float> values(info.elements());
    TRY(engine.read_tensor(index, values));
    all.push_back({{.name = prefix + info.name, .shape = info.shape}, std::move(values)});
  }
  return {};
}

void keep(std::vector<Kept>& all, const std::string& name, std::span<const std::int32_t> numbers,
          std::vector<std::int64_t> shape) {
  all.push_back({{.name = name, .shape = std::move(shape)}, {numbers.begin(), numbers.end()}});
}

void write(const std::vector<Kept>& all, const std::string& file) {
  std::vector<StoredTensor> infos;
  for (const Kept& one : all) infos.push_back(one.info);
  const SafetensorsLayout layout = plan_safetensors(infos);
  std::vector<char> image(layout.file_bytes);
  std::memcpy(image.data(), layout.head.data(), layout.head.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    std::memcpy(image.data() + layout.tensors[i].begin, all[i].values.data(), layout.tensors[i].bytes);
  std::ofstream(file, std::ios::binary).write(image.data(), static_cast<std::streamsize>(image.size()));
}

Result<void> compute(const Target& of) {
  const std::unique_ptr<Engine> engine = TRY(make_engine(of));
  std::vector<Kept> all;
  fill(*engine, of);
  keep(all, "in", engine->tokens(), {of.batch, of.length});
  keep(all, "labels", engine->labels(), {of.batch, of.length});
  TRY(keep(all, *engine, "before."));
  std::vector<float> losses;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const BatchResult result = engine->train_batch(step, {});
    TRY(engine->status());
    losses.push_back(static_cast<float>(result.loss_sum / static_cast<double>(of.batch)));
    engine->apply({.learning_rate = 1, .updates = step});
    if (step == 0) TRY(keep(all, *engine, "after."));
  }
  const BatchResult last = engine->evaluate_batch();
  TRY(engine->status());
  losses.push_back(static_cast<float>(last.loss_sum / static_cast<double>(of.batch)));
  losses.push_back(static_cast<float>(last.correct));
  all.push_back({{.name = "losses", .shape = {5}}, losses});
  std::vector<float> scores(static_cast<std::size_t>(of.batch * engine->language()->vocabulary()));
  TRY(engine->language()->next_scores(of.length / 2, scores));
  all.push_back({{.name = "scores", .shape = {of.batch, engine->language()->vocabulary()}}, scores});
  TRY(keep(all, *engine, "last."));
  write(all, of.file);
  return {};
}

Result<void> time(const Target& of) {
  const std::unique_ptr<Engine> engine = TRY(make_engine(of));
  fill(*engine, of);
  std::chrono::steady_clock::time_point start;
  for (std::uint64_t step = 0; step < of.steps + 5; ++step) {
    if (step == 5) start = std::chrono::steady_clock::now();
    engine->train_batch(step, {});
    TRY(engine->status());
    engine->apply({.learning_rate = 1e-4F, .updates = step});
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                         static_cast<double>(of.steps);
  const BatchResult last = engine->train_batch(of.steps + 5, {});
  fmt::print(
      "{} {} layers {} features batch {}: {:.2f} ms, {:.0f} tokens/s, {:.0f} MB, loss {:.4f}\n", of.precision,
      of.layers, of.features, of.batch, seconds * 1e3, static_cast<double>(of.batch * of.length) / seconds,
      static_cast<double>(engine->memory_bytes()) / 1e6, last.loss_sum / static_cast<double>(of.batch));
  auto* const gpu = dynamic_cast<CudaEngine*>(engine.get());
  if (gpu == nullptr) return {};
  for (const OperatorTime& line : TRY(gpu->profile()))
    fmt::print("  {:24} {:10} {:9.3f}\n", line.name, line.phase, line.seconds * 1e3);
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 12) return fmt::print(stderr, "usage: see transformer_values.cpp\n"), 64;
  const Target of = read(arguments, count);
  const Result<void> done = of.steps > 0 ? time(of) : compute(of);
  if (done) return 0;
  fmt::print(stderr, "transformer-values: {}\n", done.error().what);
  return 1;
}
