// Which ranks share a node, and which are of one number in their nodes.
#include "runtime/comm/allreduce/nodes.hpp"

#include <doctest/doctest.h>

#include "tests/unit/train/thread_ranks.hpp"

namespace dlrun::runtime {

TEST_CASE("a rank's place: those of its node, and those of its number in all nodes") {
  const std::vector<std::uint64_t> by_turns = {8, 9, 8, 9, 8, 9};
  const auto place = node_groups_of(by_turns, 3);
  REQUIRE(place);
  CHECK(place->inside == std::vector<int>{1, 3, 5});
  CHECK(place->across == std::vector<int>{2, 3});
}

TEST_CASE("nodes with unequal numbers of ranks are refused by the ranks that show it") {
  const std::vector<std::uint64_t> uneven = {4, 4, 4, 5, 5};
  const auto place = node_groups_of(uneven, 4);
  REQUIRE(!place);
  CHECK(place.error().kind == ErrorKind::allocation);
  CHECK(
      node_groups_of(uneven, 4, "DLRUN_ALLREDUCE").error().hint.ends_with("or set DLRUN_ALLREDUCE to auto"));
  CHECK(place.error().text() ==
        "the hierarchical allreduce needs the same number of ranks on every node: the node of rank 3 has 2, "
        "that of "
        "rank 0 has 3\n  hint: start the same number of ranks on every node, or set "
        "train.allreduce.algorithm to auto");
}

TEST_CASE("threads of this process share a node, unless the environment says how many ranks make one") {
  test::on_ranks(4, [](Communicator& world) {
    const auto real = gather_nodes(world, Environment());
    REQUIRE(real);
    CHECK(node_groups_of(*real, world.rank())->inside.size() == 4);
    const auto played = gather_nodes(world, Environment::from_entries({"DLRUN_NODE_RANKS=2"}));
    REQUIRE(played);
    CHECK(*played == std::vector<std::uint64_t>{0, 0, 1, 1});
  });
}

TEST_CASE("what is no number of ranks is refused") {
  test::on_ranks(1, [](Communicator& world) {
    const auto nodes = gather_nodes(world, Environment::from_entries({"DLRUN_NODE_RANKS=0"}));
    REQUIRE(!nodes);
    CHECK(nodes.error().kind == ErrorKind::usage);
    CHECK(nodes.error().what == "DLRUN_NODE_RANKS is '0'");
  });
}

}  // namespace dlrun::runtime
