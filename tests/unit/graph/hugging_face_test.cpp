// Weights of transformers in Hugging Face's files: the file that goes out gives the same scores in its model,
// which hugging_face.py writes out by hand; and what comes in is what went out.
#include <fstream>

#include <doctest/doctest.h>

#include "fixture.hpp"
#include "pytorch.hpp"
#include "runtime/models/transformer.hpp"
#include "runtime/train/init_weights.hpp"
#include "runtime/train/weight_file.hpp"
#include "src/base/json.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

constexpr std::int64_t kRows = 2, kPositions = 9, kWords = 31;

void write_file(const std::filesystem::path& path, const void* data, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  REQUIRE(file.good());
}

// [row][position][word], position by position.
std::vector<float> scores_of(Engine& engine) {
  std::vector<float> out(kRows * kPositions * kWords), next(kRows * kWords);
  engine.evaluate_batch();
  for (std::int64_t position = 0; position < kPositions; ++position) {
    REQUIRE(engine.language()->next_scores(position, next));
    for (std::int64_t row = 0; row < kRows; ++row)
      std::copy_n(next.begin() + row * kWords, kWords, out.begin() + (row * kPositions + position) * kWords);
  }
  return out;
}

void check_file(const Transformer& spec, const char* form) {
  const dlrun::test::Folder folder;
  const Graph graph = build_transformer("small", spec, token_sequences(kPositions, kWords)).value();
  const auto engine = engine_for(graph, kRows), other = engine_for(graph, kRows);
  scramble(*engine);
  const Batch batch = random_batch(token_sequences(kPositions, kWords), kRows);
  put(*engine, batch);
  const auto scores = scores_of(*engine);
  const std::string file = weight_file_of(*engine, graph).value();
  write_file(folder.path / "model.safetensors", file.data(), file.size());
  write_file(folder.path / "scores", scores.data(), scores.size() * sizeof(float));
  write_file(folder.path / "tokens", batch.tokens.data(), batch.tokens.size() * sizeof(std::int32_t));
  const Json job{{"batch", kRows}, {"form", form}, {"heads", spec.heads}, {"layers", spec.layers}};
  std::ofstream(folder.path / "gpt2.json") << to_text(job);
  const Result<bool> agrees = PyTorch::agrees(folder.path.string(), 1e-5);
  REQUIRE_MESSAGE(agrees, (agrees ? "" : agrees.error().text()));
  CHECK(*agrees);

  const auto lines = init_weights(*other, {.file = folder.path / "model.safetensors"});
  REQUIRE_MESSAGE(lines, (lines ? "" : lines.error().text()));
  CHECK(lines->size() == 1);  // nothing is left
  put(*other, batch);
  CHECK(scores_of(*other) == scores);
  for (const TensorInfo& info : engine->tensors()) {
    CAPTURE(info.name);
    CHECK(read(*engine, info.name) == read(*other, info.name));
  }
}

}  // namespace

TEST_CASE("a GPT-2's weights are a file of transformers' GPT2LMHeadModel, out and in") {
  // As many features in as out of a projection: nothing but the names tells that it lies turned.
  check_file({.layers = 2, .heads = 3, .features = 24, .context = 12}, "gpt2");
}

TEST_CASE("a model of Llama's form is a file of transformers' LlamaForCausalLM, out and in") {
  check_file({.layers = 2,
              .heads = 4,
              .features = 24,
              .key_heads = 2,
              .norm = Transformer::Norm::rms,
              .activation = Transformer::FeedForward::swiglu,
              .positions = Transformer::Positions::rotary,
              .head = Transformer::Head::own,
              .bias = Bias::none},
             "llama");
}
