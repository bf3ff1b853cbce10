// A world of one: every collective leaves what is there.
#include "runtime/comm/one_rank.hpp"

#include <array>

#include <doctest/doctest.h>

namespace dlrun::runtime {

TEST_CASE("one rank is its own sum, broadcast and gathering") {
  const auto world = make_one_rank_communicator();
  CHECK(world->rank() == 0);
  CHECK(world->size() == 1);
  std::array<float, 3> data{1, 2, 3};
  CHECK(world->allreduce(data));
  CHECK(data == std::array<float, 3>{1, 2, 3});
  std::array<float, 3> all{};
  CHECK(world->allgather(std::as_bytes(std::span(data)), std::as_writable_bytes(std::span(all))));
  CHECK(all == data);
  CHECK(world->barrier());
  CHECK(world->finish());
}

TEST_CASE("a gathering into an array of another size is refused") {
  const auto world = make_one_rank_communicator();
  std::array<std::byte, 3> mine{};
  std::array<std::byte, 4> all{};
  CHECK(!world->allgather(mine, all));
}

}  // namespace dlrun::runtime
