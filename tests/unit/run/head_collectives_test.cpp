// The head and the collectives of agents: as the star's centre, and where they go through a tree of agents.
#include <doctest/doctest.h>

#include "src/run/collectives.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

HeadSettings by_tree() {
  return {
      .launcher = "ssh", .collectives = Collectives::by_tree, .relay_token = "secret", .own_host = "login"};
}

// Six nodes: 0 is above 1, 3, 4 and 5, and 1 above 2.
World six_nodes(HeadSettings settings) {
  World world(World::plan_of(6, 1), std::move(settings));
  world.arrive();
  return world;
}

std::string fate(const World& world) {
  std::string out;
  for (const Json& event : world.recorded("node_failed")) out += event["reason"].get<std::string>() + "\n";
  return out;
}

plan::Plan plan_of(std::size_t nodes, plan::MpiProtocol mpi) {
  plan::Plan plan = World::plan_of(static_cast<int>(nodes), 1);
  plan.mpi = mpi;
  return plan;
}

}  // namespace

TEST_CASE("the tree is for many nodes whose agents serve an MPI, or where the job wants it") {
  using enum plan::RelayUse;
  using plan::MpiProtocol;
  const auto chosen = [](plan::RelayUse use, std::size_t nodes, MpiProtocol mpi = MpiProtocol::pmix) {
    return collectives_of(use, plan_of(nodes, mpi));
  };
  CHECK(chosen(automatic, 64) == Collectives::by_head);
  CHECK(chosen(automatic, 65) == Collectives::by_tree);
  CHECK(chosen(automatic, 65, MpiProtocol::pmi1) == Collectives::by_tree);
  CHECK(chosen(automatic, 65, MpiProtocol::none) == Collectives::by_head);
  CHECK(chosen(automatic, 65, MpiProtocol::native) == Collectives::by_head);
  CHECK(chosen(off, 1000) == Collectives::by_head);
  CHECK(chosen(on, 2) == Collectives::by_tree);
  CHECK(chosen(on, 1) == Collectives::by_head);
}

TEST_CASE("in a star the head gives every node all blobs, and knows no tree") {
  World world = six_nodes({.launcher = "ssh", .own_host = "login"});
  CHECK(world.sent<to::Relay>(0).empty());
  for (int node = 0; node < 6; ++node) world.say(node, from::Allgather{"k", std::to_string(node)});
  REQUIRE(world.sent<to::Allgathered>(3).size() == 1);
  CHECK(world.sent<to::Allgathered>(3)[0].blobs.size() == 6);
  world.say(3, from::RelayPort{.port = 1, .addresses = {}});
  CHECK(fate(world) == "message 'relay_port', and there is no relay tree\n");
}

TEST_CASE("agents hear of the tree behind their slices, and of the agent above once it listens") {
  World world = six_nodes(by_tree());
  REQUIRE(world.sent<to::Relay>(5).size() == 1);
  CHECK(world.sent<to::Relay>(5)[0].token == "secret");
  world.say(0, from::RelayPort{.port = 4711, .addresses = {"10.0.0.1"}});
  for (const int child : {1, 3, 4, 5}) {
    REQUIRE(world.sent<to::RelayParent>(child).size() == 1);
    CHECK(world.sent<to::RelayParent>(child)[0].port == 4711);
    CHECK(world.sent<to::RelayParent>(child)[0].addresses == std::vector<std::string>{"n1", "10.0.0.1"});
  }
  CHECK(world.sent<to::RelayParent>(2).empty());
  // One that cannot listen.
  world.say(1, from::RelayPort{});
  REQUIRE(world.sent<to::RelayParent>(2).size() == 1);
  CHECK(world.sent<to::RelayParent>(2)[0].addresses.empty());
}

TEST_CASE("that an agent cannot reach the one above is said once and recorded always") {
  World world = six_nodes(by_tree());
  world.say(3, from::NoRelayParent{"no answer"});
  world.say(4, from::NoRelayParent{"no answer either"});
  CHECK(world.notes() ==
        std::vector<std::string>{"n4: no answer; what its MPI exchanges goes through dlrun (launch.relay)"});
  REQUIRE(world.recorded("no_relay_parent").size() == 2);
  CHECK(world.recorded("no_relay_parent")[1]["host"] == "n5");
}

TEST_CASE("the head carries a link of the tree that cannot be made") {
  World world = six_nodes(by_tree());
  world.say(1, from::SubtreeAllgather{"k", {NodeIndex(1), NodeIndex(2)}, {"a", "b"}});
  REQUIRE(world.sent<to::ChildAllgather>(0).size() == 1);
  const to::ChildAllgather up = world.sent<to::ChildAllgather>(0)[0];
  CHECK(up.child == NodeIndex(1));
  CHECK(up.nodes == std::vector{NodeIndex(1), NodeIndex(2)});
  CHECK(up.blobs == std::vector<std::string>{"a", "b"});
  world.say(0, from::ChildrenAllgathered{{NodeIndex(1), NodeIndex(4)}, "k", {"x", "y"}});
  for (const int child : {1, 4}) {
    REQUIRE(world.sent<to::Allgathered>(child).size() == 1);
    CHECK(world.sent<to::Allgathered>(child)[0].blobs == std::vector<std::string>{"x", "y"});
  }
  CHECK(world.sent<to::Allgathered>(3).empty());
  CHECK(fate(world).empty());
}

TEST_CASE("an agent that says of the tree what its place does not allow is lost") {
  const auto fate_of = [](int node, protocol::FromAgent message) {
    World world = six_nodes(by_tree());
    world.happen(event::Received{NodeIndex(node), std::move(message)});
    return fate(world);
  };
  CHECK(fate_of(0, from::SubtreeAllgather{"k", {}, {}}) ==
        "message 'subtree_allgather' of the relay tree's root\n");
  CHECK(fate_of(0, from::ChildrenAllgathered{{NodeIndex(2)}, "k", {}}) ==
        "message 'children_allgathered' for node 2, which is not below it\n");
  CHECK(fate_of(2, from::Allgather{"k", "b"}) ==
        "message 'allgather', and collectives go through the relay tree\n");
}

TEST_CASE("what is for an agent that is gone is not sent") {
  World world = six_nodes(by_tree());
  world.close(0, "reset");
  world.say(1, from::SubtreeAllgather{"k", {NodeIndex(1), NodeIndex(2)}, {"a", "b"}});
  CHECK(world.sent<to::ChildAllgather>(0).empty());
}
