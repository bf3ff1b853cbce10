// What the tests of this folder share: random batches, an engine for a graph, and its state by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference.hpp"
#include "runtime/cpu/cpu_engine.hpp"

namespace dlrun::runtime::test {

// Uniform in [-1, 1), the same for the same seed.
std::vector<float> random_numbers(std::size_t count, std::uint64_t seed);
Batch random_tokens(const InputShape& shape, std::int64_t rows, std::uint64_t seed = 5);
// Tokens where the shape is of tokens.
Batch random_batch(const InputShape& shape, std::int64_t rows, std::uint64_t seed = 5);
void put(Engine& engine, const Batch& batch);

// Those that this processor computes: f32 and, with AVX-512, bf16.
std::vector<Precision> precisions_here();

std::unique_ptr<CpuEngine> engine_for(const Graph& graph, std::int64_t batch,
                                      Precision precision = Precision::f32, Labels labels = Labels::one);
Graph finished(GraphBuilder builder);

std::size_t tensor_index(const Engine& engine, const std::string& name);
std::vector<float> read(const Engine& engine, const std::string& name);
void write(Engine& engine, const std::string& name, const std::vector<float>& values);
// Random values for every parameter and statistic (variances positive), so that no gradient is trivial.
void scramble(Engine& engine, std::uint64_t seed = 3);
State state_of(const Engine& engine);
// The gradient that the last train_batch left, in plain layout. Overwrites momentum.
State gradients_of(Engine& engine);
// Largest difference over the largest value (over 0.01 where all are smaller).
double distance(const Numbers& ours, const Numbers& theirs);

}  // namespace dlrun::runtime::test
