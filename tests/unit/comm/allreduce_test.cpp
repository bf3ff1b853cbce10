// Sums by messages, with threads in the place of ranks: the right sum, the same bits on every rank and in
// every run, whatever the length and the number of ranks.
#include <atomic>
#include <cmath>
#include <functional>
#include <random>

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/comm/collectives.hpp"
#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/thread_link.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// By the table's own row.
std::function<Result<void>(Transport&, std::span<float>, Scratch&)> by(std::string_view name,
                                                                       CommDtype dtype = CommDtype::f32) {
  return [run = find_allreduce(name)->run, dtype](Transport& link, std::span<float> data, Scratch& scratch) {
    return run(link, data, dtype, scratch);
  };
}

using Sum = std::function<Result<void>(Transport&, std::span<float>, Scratch&)>;

Arrays summed(Arrays arrays, SendIsDone send_is_done, const Sum& sum) {
  on_linked_ranks(static_cast<int>(arrays.size()), send_is_done, [&](Transport& link) {
    Scratch scratch;
    const auto result = sum(link, arrays[static_cast<std::size_t>(link.rank())], scratch);
    if (!result) std::abort();
  });
  return arrays;
}

// Of a number among the sums, relative to the size of the terms.
double largest_error(const std::vector<float>& sum, const Arrays& arrays) {
  double largest = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    double exact = 0, size = 0;
    for (const auto& array : arrays) {
      exact += static_cast<double>(array[i]);
      size += std::abs(static_cast<double>(array[i]));
    }
    largest = std::max(largest, std::abs(static_cast<double>(sum[i]) - exact) / size);
  }
  return largest;
}

void check(const Sum& sum, double tolerance) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const std::size_t length : {0U, 1U, 17U, 1000U, 70'000U, 600'011U}) {
      if (length > 100'000 && ranks != 2 && ranks != 3 && ranks != 8)
        continue;  // many pieces: of few, and of most
      CAPTURE(ranks);
      CAPTURE(length);
      const Arrays arrays = random_arrays(ranks, length, 10);
      const Arrays once = summed(arrays, SendIsDone::when_received, sum);
      CHECK(largest_error(once[0], arrays) <= tolerance);
      for (const auto& array : once) CHECK(array == once[0]);
      CHECK(summed(arrays, SendIsDone::at_once, sum) == once);
    }
}

}  // namespace

TEST_CASE("recursive halving gives every rank the same sum") {
  check(by("recursive-halving-doubling"), 1e-6);
}

TEST_CASE("the ring gives every rank the same sum") {
  check(by("ring"), 1e-6);
}

TEST_CASE("the ring comes to an end where sends wait for their receivers and shares have many pieces") {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    const Arrays arrays = random_arrays(ranks, 2'000'003, 10);
    for (const auto& array : summed(arrays, SendIsDone::when_received, by("ring")))
      CHECK(largest_error(array, arrays) <= 1e-6);
  }
}

// A term is rounded once and the sum once, however many ranks there are: 2 x 2^-8 of bf16, 2 x 2^-11 of f16.
TEST_CASE("the exchange rounds twice and adds in f32") {
  check(by("direct", CommDtype::bf16), std::ldexp(1.02, -7));
  check(by("direct", CommDtype::f16), std::ldexp(1.02, -10));
  check(by("direct", CommDtype::f32), 1e-6);
}

TEST_CASE("auto gives every rank the same sum, whatever it takes") {
  check([](Transport& link, std::span<float> data,
           Scratch& scratch) { return allreduce_by_size(link, data, CommDtype::f32, scratch); },
        1e-6);
}

TEST_CASE("servers add in the order of the ranks, each its pieces, to the bits of a sum in that order") {
  for (const int ranks : {2, 3, 4})
    for (const int servers : {1, 2, 4}) {
      CAPTURE(ranks);
      CAPTURE(servers);
      const Arrays arrays = random_arrays(ranks, 400'000, 10);
      const Sum sum = [&](Transport& link, std::span<float> data, Scratch& scratch) {
        std::vector<ServedPiece> pieces;
        const std::size_t lengths[] = {3, 150'000, 1, 70'000, 100, 179'896};
        std::size_t at = 0;
        for (int i = 0; i < 6; ++i) {
          pieces.push_back({data.subspan(at, lengths[i]), i % servers % ranks});
          at += lengths[i];
        }
        return parameter_server_allreduce(link, pieces, scratch);
      };
      for (const SendIsDone done : {SendIsDone::at_once, SendIsDone::when_received})
        for (const auto& array : summed(arrays, done, sum)) CHECK(array == sum_in_rank_order(arrays));
    }
}

TEST_CASE("in 16 bits servers round a term and a sum once, and all ranks have the same bits") {
  for (const auto& [dtype, tolerance] :
       {std::pair{CommDtype::bf16, std::ldexp(1.02, -7)}, {CommDtype::f16, std::ldexp(1.02, -10)}})
    check(
        [of = dtype](Transport& link, std::span<float> data, Scratch& scratch) {
          const std::size_t third = data.size() / 3;
          const std::vector<ServedPiece> pieces{{data.first(third), 0, of},
                                                {data.subspan(third), link.size() - 1, of}};
          return parameter_server_allreduce(link, pieces, scratch);
        },
        tolerance);
}

TEST_CASE("at a barrier nobody goes on before all have come") {
  for (const int ranks : {1, 2, 3, 6, 8})
    for (const SendIsDone done : {SendIsDone::at_once, SendIsDone::when_received}) {
      CAPTURE(ranks);
      std::atomic<int> came = 0, early = 0;
      on_linked_ranks(ranks, done, [&](Transport& link) {
        for (int round = 1; round <= 50; ++round) {
          ++came;
          if (!dissemination_barrier(link)) std::abort();
          if (came < round * ranks) ++early;
        }
      });
      CHECK(early == 0);
    }
}
