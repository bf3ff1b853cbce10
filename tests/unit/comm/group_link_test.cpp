// Sums over some ranks of a world: by messages among them alone.
#include "runtime/comm/transport/group_link.hpp"

#include <doctest/doctest.h>

#include "runtime/comm/allreduce/algorithms.hpp"
#include "tests/unit/comm/thread_link.hpp"

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

}  // namespace

TEST_CASE("groups sum by messages beside each other, by every algorithm") {
  for (const std::size_t length : {std::size_t{3}, std::size_t{100'003}})
    for (const CommDtype dtype : {CommDtype::f32, CommDtype::bf16})
      test::on_linked_ranks(6, test::SendIsDone::when_received, [&](Transport& world) {
        const std::vector<int> group = group_of(world.rank(), 6);
        GroupLink link(world, group);
        CHECK(link.size() == 3);
        CHECK(link.rank() == world.rank() / 2);
        Scratch scratch;
        std::vector<float> numbers(length, static_cast<float>(world.rank() + 1));
        CHECK(allreduce_by_size(link, numbers, dtype, scratch));
        CHECK(numbers == std::vector<float>(length, sum_of(world.rank(), 6)));
      });
}

}  // namespace dlrun::runtime
