// The sum through shared memory, with threads in the place of ranks: every rank has the sum in rank order,
// bit for bit, whatever the length.
#include "runtime/comm/transport/shared_memory.hpp"

#include <atomic>
#include <cmath>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "tests/unit/comm/arrays.hpp"

namespace dlrun::runtime {

namespace {

void on_all_ranks(int ranks, const std::function<void(SharedMemoryAllreduce&, int rank)>& body) {
  std::vector<char> memory(SharedMemoryAllreduce::bytes(ranks), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SharedMemoryAllreduce sum(memory.data(), rank, ranks);
      body(sum, rank);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("all ranks have the sum in rank order") {
  for (const int ranks : {2, 3, 5}) {
    for (const std::size_t length : {0U, 1U, 15U, 16U, 17U, 1000U, 64U * 1024U, 64U * 1024U + 1U, 300'001U}) {
      CAPTURE(ranks);
      CAPTURE(length);
      Arrays arrays = random_arrays(ranks, length, 1000);
      const std::vector<float> expected = sum_in_rank_order(arrays);
      on_all_ranks(ranks, [&](SharedMemoryAllreduce& sum, int rank) {
        sum.allreduce(arrays[static_cast<std::size_t>(rank)]);
      });
      for (const auto& array : arrays) CHECK(array == expected);
    }
  }
}

TEST_CASE("parts of any lengths, in turn with sums: the same bits as the sum of all") {
  for (const int ranks : {2, 3, 5}) {
    CAPTURE(ranks);
    const Borders borders = uneven_borders(ranks);
    const Arrays arrays = random_arrays(ranks, borders.back(), 1000);
    const std::vector<float> expected = sum_in_rank_order(arrays);
    std::atomic<int> right = 0;
    on_all_ranks(ranks, [&](SharedMemoryAllreduce& sum, int rank) {
      for (int round = 0; round < 3; ++round) {
        std::vector<float> data = arrays[static_cast<std::size_t>(rank)], whole = data;
        sum.reduce_scatter(data, borders, CommDtype::f32);
        if (has_part(data, expected, borders, rank)) ++right;
        if (round == 1) sum.allreduce(whole);
        sum.allgather(data, borders);
        if (data == expected) ++right;
      }
    });
    CHECK(right == 6 * ranks);
  }
}

TEST_CASE("in 16 bits, the terms of other ranks are rounded, and the sum of a part is not") {
  std::atomic<int> right = 0;
  on_all_ranks(3, [&](SharedMemoryAllreduce& sum, int rank) {
    std::vector<float> data(48, 257);  // 256 in bf16
    sum.reduce_scatter(data, {0, 16, 32, 48}, CommDtype::bf16);
    if (data[16 * static_cast<std::size_t>(rank)] == 256 + 257 + 256) ++right;
  });
  CHECK(right == 3);
}

TEST_CASE("many sums in a row do not disturb each other") {
  constexpr int ranks = 3;
  constexpr int rounds = 500;
  std::vector<int> wrong(ranks, 0);
  on_all_ranks(ranks, [&](SharedMemoryAllreduce& sum, int rank) {
    std::vector<float> data(100);
    for (int round = 0; round < rounds; ++round) {
      std::fill(data.begin(), data.end(), static_cast<float>(round + rank));
      sum.allreduce(data);
      for (const float x : data)
        if (x != static_cast<float>(3 * round + 3)) ++wrong[static_cast<std::size_t>(rank)];
    }
  });
  CHECK(wrong == std::vector<int>(ranks, 0));
}

TEST_CASE("no rank leaves a barrier before all have entered it, and sums before and after it are right") {
  constexpr int ranks = 3;
  constexpr int rounds = 300;
  std::atomic<int> came = 0;
  std::vector<int> wrong(ranks, 0);
  on_all_ranks(ranks, [&](SharedMemoryAllreduce& sum, int rank) {
    int& mistakes = wrong[static_cast<std::size_t>(rank)];
    std::vector<float> data(100);
    for (int round = 0; round < rounds; ++round) {
      ++came;
      for (int barriers = round % 4; barriers >= 0; --barriers) sum.barrier();
      if (came < ranks * (round + 1)) ++mistakes;
      std::fill(data.begin(), data.end(), static_cast<float>(round + rank));
      sum.allreduce(data);
      if (data != std::vector<float>(100, static_cast<float>(3 * round + 3))) ++mistakes;
    }
  });
  CHECK(wrong == std::vector<int>(ranks, 0));
}

TEST_CASE("in a 16-bit dtype all ranks have the same bits, and the sum is rounded no more than twice") {
  for (const CommDtype dtype : {CommDtype::bf16, CommDtype::f16})
    for (const int ranks : {2, 3, 5}) {
      CAPTURE(ranks);
      Arrays arrays = random_arrays(ranks, 100'001, 1000);
      const std::vector<float> exact = sum_in_rank_order(arrays);
      std::vector<float> size(exact.size());
      for (const auto& array : arrays)
        for (std::size_t i = 0; i < size.size(); ++i) size[i] += std::abs(array[i]);
      on_all_ranks(ranks, [&](SharedMemoryAllreduce& sum, int rank) {
        sum.allreduce(arrays[static_cast<std::size_t>(rank)], dtype);
      });
      for (const auto& array : arrays) CHECK(array == arrays[0]);
      std::size_t wrong = 0;
      const float tolerance = dtype == CommDtype::bf16 ? 1.02F / 128 : 1.02F / 1024;
      for (std::size_t i = 0; i < size.size(); ++i)
        if (std::abs(arrays[0][i] - exact[i]) > tolerance * size[i]) ++wrong;
      CHECK(wrong == 0);
      CHECK(arrays[0] != exact);
    }
}

TEST_CASE("who waits for a rank that is gone asks why, and waits no more") {
  std::vector<char> memory(SharedMemoryAllreduce::bytes(2), 0);
  SharedMemoryAllreduce sum(memory.data(), 0, 2);
  std::vector<int> asked;
  sum.set_lost([&](int rank) -> std::optional<Error> {
    asked.push_back(rank);
    if (asked.size() == 1) return std::nullopt;
    return Error{.kind = ErrorKind::lost, .what = "rank 1 on c1 is gone"};
  });
  std::vector<float> data(100'000, 1);
  CHECK(sum.state());
  sum.allreduce(data);
  CHECK(sum.state().error().what == "rank 1 on c1 is gone");
  sum.barrier();
  CHECK(asked == std::vector{1, 1});
}

TEST_CASE("a rank that has come and gone is not missed") {
  std::vector<char> memory(SharedMemoryAllreduce::bytes(2), 0);
  SharedMemoryAllreduce slow(memory.data(), 0, 2);
  std::atomic<bool> gone{false};
  std::thread other([&] {
    SharedMemoryAllreduce(memory.data(), 1, 2).barrier();
    gone = true;
  });
  slow.set_lost([&](int) -> std::optional<Error> {
    if (!gone) return std::nullopt;
    return Error{.kind = ErrorKind::lost, .what = "gone"};
  });
  slow.barrier();
  other.join();
  CHECK(slow.state());
}

}  // namespace dlrun::runtime
