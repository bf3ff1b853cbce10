// Collectives by messages: any number of ranks, any root, and the order in which reduce-scatter adds.
#include "runtime/comm/collectives.hpp"

#include <atomic>

#include <doctest/doctest.h>

#include "tests/unit/comm/arrays.hpp"
#include "tests/unit/comm/thread_link.hpp"

namespace dlrun::runtime {

TEST_CASE("a broadcast reaches every rank from every root") {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (int root = 0; root < ranks; ++root)
      test::on_linked_ranks(ranks, test::SendIsDone::when_received, [&](Transport& link) {
        std::vector<std::byte> data(1000, link.rank() == root ? std::byte{7} : std::byte{0});
        CHECK(tree_broadcast(link, data, root));
        CHECK(data == std::vector<std::byte>(1000, std::byte{7}));
      });
}

TEST_CASE("an allgather has every rank's part in the order of the ranks") {
  for (const int ranks : {1, 2, 3, 7})
    test::on_linked_ranks(ranks, test::SendIsDone::when_received, [&](Transport& link) {
      const std::array<std::byte, 2> mine{std::byte(link.rank()), std::byte(link.rank() + 100)};
      std::vector<std::byte> all(2 * static_cast<std::size_t>(ranks)), expected;
      for (int rank = 0; rank < ranks; ++rank) {
        expected.push_back(std::byte(rank));
        expected.push_back(std::byte(rank + 100));
      }
      CHECK(direct_allgather(link, mine, all));
      CHECK(all == expected);
    });
}

TEST_CASE("reduce-scatter gives each rank its block of the sum, to the bits of a sum in rank order") {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const std::size_t block : {0U, 1U, 17U, 70'003U, 600'011U}) {
      if (block > 100'000 && ranks > 3) continue;  // as many bytes as in all other cases
      CAPTURE(ranks);
      CAPTURE(block);
      const Arrays arrays = random_arrays(ranks, block * static_cast<std::size_t>(ranks), 1000);
      const std::vector<float> sum = sum_in_rank_order(arrays);
      std::atomic<int> right = 0;
      test::on_linked_ranks(ranks, test::SendIsDone::when_received, [&](Transport& link) {
        const auto rank = static_cast<std::size_t>(link.rank());
        const std::span<const float> expected(sum.data() + rank * block, block);
        Scratch scratch;
        std::vector<float> mine(block), in_place = arrays[rank];
        if (!direct_reduce_scatter(link, arrays[rank], mine, CommDtype::f32, scratch)) return;
        const std::span<float> own(in_place.data() + rank * block, block);
        if (!direct_reduce_scatter(link, in_place, own, CommDtype::f32, scratch)) return;
        if (std::equal(expected.begin(), expected.end(), mine.begin()) &&
            std::equal(expected.begin(), expected.end(), own.begin()))
          ++right;
      });
      CHECK(right == ranks);
    }
}

TEST_CASE("parts of any lengths: each rank has the sum of its own, and then all ranks have all") {
  for (const int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    const Borders borders = uneven_borders(ranks);
    const Arrays arrays = random_arrays(ranks, borders.back(), 1000);
    const std::vector<float> sum = sum_in_rank_order(arrays);
    std::atomic<int> right = 0;
    test::on_linked_ranks(ranks, test::SendIsDone::when_received, [&](Transport& link) {
      std::vector<float> data = arrays[static_cast<std::size_t>(link.rank())];
      Scratch scratch;
      if (!direct_reduce_scatter(link, data, borders, CommDtype::f32, scratch)) return;
      if (!has_part(data, sum, borders, link.rank())) return;
      if (direct_allgather(link, data, borders) && data == sum) ++right;
    });
    CHECK(right == ranks);
  }
}

TEST_CASE("a 16-bit reduce-scatter rounds the terms of the others, not its own, and adds in f32") {
  std::atomic<int> right = 0;
  test::on_linked_ranks(3, test::SendIsDone::at_once, [&](Transport& link) {
    // 256 + 1 has no form in bf16: it comes as 256.
    const std::vector<float> data(3, 257);
    std::vector<float> mine(1);
    Scratch scratch;
    if (direct_reduce_scatter(link, data, mine, CommDtype::bf16, scratch) && mine[0] == 256 + 257 + 256)
      ++right;
  });
  CHECK(right == 3);
}

TEST_CASE("lengths that do not fit each other are refused") {
  CHECK(check_reduce_scatter(12, 4, 3));
  CHECK(check_reduce_scatter(12, 5, 3).error().what ==
        "reduce-scatter of 12 numbers on 3 ranks into 5 numbers each");
  CHECK(check_borders(std::vector<std::size_t>{0, 3, 3, 8}, 8, 3));
  for (const Borders& bad : {Borders{0, 8}, Borders{0, 3, 2, 8}, Borders{0, 3, 3, 7}, Borders{1, 3, 3, 8}})
    CHECK_FALSE(check_borders(bad, 8, 3));
  CHECK(check_allgather(4, 11, 3).error().what == "allgather of 4 bytes from 3 ranks into 11 bytes");
}

}  // namespace dlrun::runtime
