#include "runtime/data/sample_order.hpp"

#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/data/split.hpp"

using namespace dlrun::runtime;

namespace {

// The samples that the ranks of a world take from `seen` on, for some steps or to the epoch's end.
std::uint64_t take(std::vector<int>& counts, const Permutation& order, std::uint64_t seen,
                   std::uint64_t batch, int world, int steps) {
  const std::uint64_t samples = counts.size();
  for (int step = 0; step < steps && seen < samples; ++step) {
    std::uint64_t rows = 0;
    for (int rank = 0; rank < world; ++rank) {
      const Shard shard = step_shard(seen, samples, batch, rank, world);
      CHECK(shard.count <= batch);
      for (std::uint64_t i = 0; i < shard.count; ++i) ++counts[order(shard.first + i)];
      rows += shard.count;
    }
    CHECK(rows == step_rows(seen, samples, batch, world));
    seen += rows;
  }
  return seen;
}

}  // namespace

TEST_CASE("an epoch's order is a permutation, whatever the size") {
  for (const std::uint64_t size : {1u, 2u, 3u, 16u, 17u, 1000u, 60000u}) {
    const Permutation order = SampleOrder(size, 1).epoch(0);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t sample = order(i);
      CHECK(sample < size);
      seen.insert(sample);
    }
    CHECK(seen.size() == size);
  }
}

TEST_CASE("seed and epoch decide the order, and nothing else does") {
  const auto first = [](std::uint64_t seed, std::uint64_t epoch) {
    const Permutation order = SampleOrder(60000, seed).epoch(epoch);
    return std::vector<std::uint64_t>{order(0), order(1), order(2), order(3)};
  };
  CHECK(first(1, 0) == first(1, 0));
  CHECK(first(1, 0) != first(1, 1));
  CHECK(first(1, 0) != first(2, 0));
  // The order of a release that wrote checkpoints must never change.
  CHECK(first(1, 0) == std::vector<std::uint64_t>{16463, 1416, 39355, 18198});
}

TEST_CASE("the order mixes: neighbours of the file do not stay together") {
  const Permutation order = SampleOrder(60000, 1).epoch(0);
  std::uint64_t lower_half_first = 0;
  for (std::uint64_t i = 0; i < 30000; ++i) lower_half_first += order(i) < 30000 ? 1 : 0;
  CHECK(lower_half_first > 14500);
  CHECK(lower_half_first < 15500);
}

TEST_CASE("every sample of an epoch is seen exactly once, at any number of ranks") {
  for (const int world : {1, 2, 3, 7, 16}) {
    std::vector<int> counts(1003);
    CHECK(take(counts, SampleOrder(counts.size(), 5).epoch(3), 0, 8, world, 10000) == counts.size());
    for (const int count : counts) CHECK(count == 1);
  }
}

TEST_CASE("and also where the number of ranks changes in the middle") {
  for (const auto& [before, after] : {std::pair{2, 3}, {4, 1}, {1, 16}, {3, 2}}) {
    std::vector<int> counts(1003);
    const Permutation order = SampleOrder(counts.size(), 5).epoch(0);
    const std::uint64_t seen = take(counts, order, 0, 8, before, 11);
    CHECK(seen < counts.size());
    take(counts, order, seen, 8, after, 10000);
    for (const int count : counts) CHECK(count == 1);
  }
}

TEST_CASE("a split holds out the same samples for everybody, and every sample is on one side") {
  const Split split(1000, 0.9, 7), again(1000, 0.9, 7), other(1000, 0.9, 8);
  CHECK(split.training() == 900);
  CHECK(split.validation() == 100);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 900; ++i) seen.insert(split.training_sample(i));
  for (std::uint64_t i = 0; i < 100; ++i) {
    CHECK(split.validation_sample(i) == again.validation_sample(i));
    seen.insert(split.validation_sample(i));
  }
  CHECK(seen.size() == 1000);
  CHECK(split.validation_sample(0) != other.validation_sample(0));
  CHECK(Split(1000, 1, 7).training_sample(5) == 5);
  CHECK(Split(10, 0.999, 7).validation() == 1);
  CHECK(Split(10, 0.001, 7).training() == 1);
}

TEST_CASE("a short last step is spread evenly, and ranks may get nothing") {
  CHECK(step_rows(96, 100, 8, 4) == 4);
  for (int rank = 0; rank < 4; ++rank) CHECK(step_shard(96, 100, 8, rank, 4).count == 1);
  CHECK(step_shard(98, 100, 8, 0, 4).count + step_shard(98, 100, 8, 1, 4).count == 1);
}
