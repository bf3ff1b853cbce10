// Copies by messages: any number of ranks, any root.
#include "runtime/comm/allreduce/broadcast_allgather.hpp"

#include <doctest/doctest.h>

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

}  // namespace dlrun::runtime
