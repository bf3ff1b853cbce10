// Makes batches, engines and comparisons for the tests of this folder. Everything is a function of its seed,
// so a failure repeats.
#include "fixture.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime::test {

std::vector<float> random_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>(mix(seed * 1000003 + i) >> 40) * 0x1p-23F - 1.0F;
  return numbers;
}

Batch random_tokens(const InputShape& shape, std::int64_t rows, std::uint64_t seed) {
  Batch batch{.images = {}, .labels = {}, .tokens = {}, .labels_per_row = shape.labels_per_sample()};
  const auto draw = [&](std::uint64_t number) {
    return static_cast<std::int32_t>(mix(seed * 77 + number) % static_cast<std::uint64_t>(shape.classes));
  };
  for (std::int64_t at = 0; at < rows * shape.labels_per_sample(); ++at) {
    batch.tokens.push_back(draw(2 * static_cast<std::uint64_t>(at)));
    batch.labels.push_back(draw(2 * static_cast<std::uint64_t>(at) + 1));
  }
  return batch;
}

Batch random_batch(const InputShape& shape, std::int64_t rows, std::uint64_t seed) {
  Batch batch;
  if (shape.kind == SampleKind::tokens) return random_tokens(shape, rows, seed);
  batch.images = random_numbers(static_cast<std::size_t>(rows * shape.numbers()), seed);
  if (shape.targets > 0) {
    batch.targets = random_numbers(static_cast<std::size_t>(rows * shape.targets), seed + 1);
    batch.labels.assign(static_cast<std::size_t>(rows), 0);
    return batch;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    batch.labels.push_back(static_cast<std::int32_t>(mix(seed + static_cast<std::uint64_t>(row)) %
                                                     static_cast<std::uint64_t>(shape.classes)));
  return batch;
}

void put(Engine& engine, const Batch& batch) {
  REQUIRE(engine.input().size() == batch.images.size());
  REQUIRE(engine.tokens().size() == batch.tokens.size());
  REQUIRE(engine.labels().size() == batch.labels.size());
  std::copy(batch.tokens.begin(), batch.tokens.end(), engine.tokens().begin());
  std::copy(batch.images.begin(), batch.images.end(), engine.input().begin());
  std::copy(batch.labels.begin(), batch.labels.end(), engine.labels().begin());
  REQUIRE(engine.targets().size() == batch.targets.size());
  std::copy(batch.targets.begin(), batch.targets.end(), engine.targets().begin());
  const MixedLabels mixed = engine.mixed_labels();
  std::copy(batch.other_labels.begin(), batch.other_labels.end(), mixed.labels.begin());
  std::copy(batch.own_weights.begin(), batch.own_weights.end(), mixed.own_weights.begin());
}

std::vector<Precision> precisions_here() {
  if (can_compute(Precision::bf16)) return {Precision::f32, Precision::bf16};
  MESSAGE("no bf16 here: this processor has no AVX-512");
  return {Precision::f32};
}

std::unique_ptr<CpuEngine> engine_for(const Graph& graph, std::int64_t batch, Precision precision,
                                      Labels labels) {
  auto engine = compile(graph, {.batch = batch, .precision = precision, .labels = labels});
  INFO((engine ? std::string() : engine.error().text()));
  REQUIRE(engine.has_value());
  return *std::move(engine);
}

Graph finished(GraphBuilder builder) {
  auto graph = std::move(builder).finish();
  INFO((graph ? std::string() : graph.error().text()));
  REQUIRE(graph.has_value());
  return *std::move(graph);
}

std::size_t tensor_index(const Engine& engine, const std::string& name) {
  const auto& tensors = engine.tensors();
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& info) { return info.name == name; });
  INFO(name);
  REQUIRE(found != tensors.end());
  return static_cast<std::size_t>(found - tensors.begin());
}

std::vector<float> read(const Engine& engine, const std::string& name) {
  const std::size_t index = tensor_index(engine, name);
  std::vector<float> values(engine.tensors()[index].elements());
  REQUIRE(engine.read_tensor(index, values).has_value());
  return values;
}

void write(Engine& engine, const std::string& name, const std::vector<float>& values) {
  REQUIRE(engine.write_tensor(tensor_index(engine, name), values).has_value());
}

void scramble(Engine& engine, std::uint64_t seed) {
  for (const TensorInfo& info : engine.tensors()) {
    if (info.role == TensorInfo::Role::momentum) continue;
    std::vector<float> values = random_numbers(info.elements(), ++seed);
    if (info.shape.size() > 1)  // keep the size of activations
      for (float& value : values)
        value *= std::sqrt(3.0F * static_cast<float>(info.shape[0]) / static_cast<float>(info.elements()));
    if (info.name.ends_with("running_var"))
      for (float& value : values) value = std::abs(value) + 0.5F;
    write(engine, info.name, values);
  }
}

State state_of(const Engine& engine) {
  State state;
  for (const TensorInfo& info : engine.tensors()) {
    const std::vector<float> values = read(engine, info.name);
    state[info.name] = Numbers(values.begin(), values.end());
  }
  return state;
}

State gradients_of(Engine& engine) {
  engine.apply({.learning_rate = 0});  // now momentum is the gradient
  State gradients;
  for (const TensorInfo& info : engine.tensors()) {
    if (info.role != TensorInfo::Role::parameter) continue;
    const std::vector<float> values = read(engine, info.name + ".momentum");
    gradients[info.name] = Numbers(values.begin(), values.end());
  }
  return gradients;
}

double distance(const Numbers& ours, const Numbers& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double difference = 0, size = 1e-2;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (std::isnan(ours[i]) || std::isnan(theirs[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(ours[i] - theirs[i]));
    size = std::max(size, std::abs(theirs[i]));
  }
  return difference / size;
}

}  // namespace dlrun::runtime::test
