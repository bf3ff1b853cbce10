// Sums over some ranks of a world: by messages among them alone, and through rank 0 for all groups at once.
#include <doctest/doctest.h>

#include "runtime/comm/group_link.hpp"
#include "runtime/comm/star_sum.hpp"
#include "runtime/comm/sums.hpp"
#include "tests/unit/comm/thread_link.hpp"
#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {

namespace {

// Even ranks and odd ones.
std::vector<int> group_of(int rank, int ranks) {
  std::vector<int> out;
  for (int member = rank % 2; member < ranks; member += 2) out.push_back(member);
  return out;
}
float sum_of(int rank, int ranks) {
  float sum = 0;
  for (const int member : group_of(rank, ranks)) sum += static_cast<float>(member + 1);
  return sum;
}

// Links as ranks of a world without MPI have them.
PeerLinks links_of(Communicator& world) {
  auto made = PeerLinks::connect(world.rank(), world.size(), [&](std::string mine) -> Result<std::string> {
    mine.resize(1024);
    TRY(world.broadcast(std::as_writable_bytes(std::span(mine)), 0));
    return mine.substr(0, mine.find('\0'));
  });
  REQUIRE(made);
  return std::move(*made);
}

}  // namespace

TEST_CASE("groups sum by messages beside each other, in every way there is") {
  for (const std::size_t length : {std::size_t{3}, std::size_t{100'003}})
    for (const Wire wire : {Wire::f32, Wire::bf16})
      test::on_linked_ranks(6, test::SendIsDone::when_received, [&](Transport& world) {
        const std::vector<int> group = group_of(world.rank(), 6);
        GroupLink link(world, group);
        CHECK(link.size() == 3);
        CHECK(link.rank() == world.rank() / 2);
        Scratch scratch;
        std::vector<float> numbers(length, static_cast<float>(world.rank() + 1));
        CHECK(sum_over(link, numbers, wire, scratch));
        CHECK(numbers == std::vector<float>(length, sum_of(world.rank(), 6)));
      });
}

TEST_CASE("rank 0 adds for every group, in f32, and sends the sums on the wire") {
  for (const Wire wire : {Wire::f32, Wire::bf16, Wire::f16})
    test::on_ranks(4, [&](Communicator& world) {
      PeerLinks links = links_of(world);
      std::vector<float> numbers(1001, static_cast<float>(world.rank() + 1));
      CHECK(star_group_sum(links, {world.rank(), 4, world.rank() % 2}, numbers, wire));
      CHECK(numbers == std::vector<float>(1001, sum_of(world.rank(), 4)));
      REQUIRE(world.barrier());
    });
}

TEST_CASE("links that are shut end a sum that waits for a peer") {
  test::on_ranks(2, [](Communicator& world) {
    PeerLinks links = links_of(world);
    if (world.rank() == 0) {  // rank 1 never sums
      std::vector<float> numbers(10);
      std::thread other([&] { links.shut(); });
      const auto done = star_group_sum(links, {0, 2, 0}, numbers, Wire::f32);
      other.join();
      REQUIRE(!done);
      CHECK(done.error().kind == ErrorKind::lost);
    }
    REQUIRE(world.barrier());
  });
}

}  // namespace dlrun::runtime
