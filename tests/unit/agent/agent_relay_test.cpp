// The agent's part in collectives: with the head alone, and in a tree of agents.
#include <doctest/doctest.h>

#include "tests/unit/agent/agent_fixture.hpp"

using namespace dlrun;
using namespace dlrun::agent;
using namespace dlrun::agent::test;

namespace {

/// The slice of one of six nodes: 0 is above 1, 3, 4 and 5, and 1 above 2.
plan::NodeSlice one_of_six(int node) {
  plan::NodeSlice slice = two_ranks();
  slice.plan.mpi = plan::MpiProtocol::pmi1;
  slice.plan.nodes.clear();
  for (int index = 0; index < 6; ++index)
    slice.plan.nodes.push_back({.index = NodeIndex(index), .host = HostName(fmt::format("n{}", index + 1))});
  for (plan::RankPlan& rank : slice.plan.ranks) rank.node = NodeIndex(node);
  slice.node = NodeIndex(node);
  slice.node_of_rank = {node, node};
  return slice;
}

// Runs its ranks, and knows that there is a tree.
Bench in_tree(int node, bool heartbeat = false) {
  Bench bench;
  bench.run(one_of_six(node), heartbeat);
  bench.says(to_agent::Relay{"secret"});
  return bench;
}
Bench joined(int node, bool heartbeat = false) {
  Bench bench = in_tree(node, heartbeat);
  bench.says(to_agent::RelayParent{{"n1", "10.0.0.1"}, 4711});
  bench.on(event::ParentJoined{});
  return bench;
}
const std::vector<std::string> kSix{"0", "1", "2", "3", "4", "5"};

}  // namespace

TEST_CASE("without a tree an agent gives its ranks' data to the head, and tells them the result") {
  Bench bench;
  bench.run();
  CHECK(bench.on(event::MpiAllgather{"pmi1/0", "blob"}) == "say! allgather key=pmi1/0 (4 bytes)");
  CHECK(bench.says(to_agent::Allgathered{"pmi1/0", {"blob", ""}}) == "tell allgathered pmi1/0");
}

TEST_CASE("an agent with others below it opens a port, and says where; one without does not") {
  Bench bench;
  bench.run(one_of_six(0));
  CHECK(bench.says(to_agent::Relay{"secret"}) == "open relay for 4 children");
  CHECK(bench.on(event::RelayOpened{protocol::from_agent::RelayPort{4711, {"10.0.0.1"}}}) ==
        R"(say! relay_port port=4711 addresses=["10.0.0.1"])");
  Bench leaf;
  leaf.run(one_of_six(5));
  CHECK(leaf.says(to_agent::Relay{"secret"}).empty());
}

TEST_CASE("an agent that cannot open a port says why, and that it has none") {
  Bench bench = in_tree(1);
  CHECK(bench.on(event::RelayOpened{fail(Error{.kind = ErrorKind::unavailable, .what = "no port"})}) ==
        "say log text=no port; say! relay_port port=0 addresses=[]");
}

TEST_CASE("what ranks give waits until the agent above is reached") {
  Bench bench = in_tree(5);
  CHECK(bench.on(event::MpiAllgather{"pmi1/0", "blob"}).empty());
  CHECK(bench.says(to_agent::RelayParent{{"n1", "10.0.0.1"}, 4711}) == "join 0 at n1,10.0.0.1 port 4711");
  CHECK(bench.on(event::ParentJoined{}) == "up pmi1/0 of 1 nodes");
  CHECK(bench.on(event::ParentSaid{{"pmi1/0", kSix}}) == "tell allgathered pmi1/0");
}

TEST_CASE("where the agent above cannot be reached, the head carries the data and is told why") {
  Bench bench = in_tree(5);
  bench.on(event::MpiAllgather{"pmi1/0", "blob"});
  bench.says(to_agent::RelayParent{{"n1"}, 4711});
  CHECK(bench.on(event::ParentJoined{fail(Error{.kind = ErrorKind::unavailable,
                                                .what = "no answer",
                                                .also = {"n1: no route", "10.0.0.1: refused"}})}) ==
        "say no_relay_parent reason=no answer (n1: no route; 10.0.0.1: refused); "
        "say! subtree_allgather key=pmi1/0 nodes=[5] sizes=[4] (4 bytes)");
  CHECK(bench.says(to_agent::Allgathered{"pmi1/0", kSix}) == "tell allgathered pmi1/0");
}

TEST_CASE("where the agent above has no port, the head carries the data and nothing is said") {
  Bench bench = in_tree(5);
  bench.on(event::MpiAllgather{"pmi1/0", "blob"});
  CHECK(bench.says(to_agent::RelayParent{}) ==
        "say! subtree_allgather key=pmi1/0 nodes=[5] sizes=[4] (4 bytes)");
}

TEST_CASE("an agent passes on what those below it give, and the result to each by the same route") {
  Bench bench = joined(1);
  bench.on(event::MpiAllgather{"pmi1/0", "1"});
  CHECK(bench.on(event::ChildSaid{NodeIndex(2), {"pmi1/0", {NodeIndex(2)}, {"2"}}}) ==
        "up pmi1/0 of 2 nodes");
  CHECK(bench.on(event::ParentSaid{{"pmi1/0", kSix}}) == "down pmi1/0 to 2; tell allgathered pmi1/0");
  bench.on(event::MpiAllgather{"pmi1/1", "1"});
  bench.says(to_agent::ChildAllgather{NodeIndex(2), "pmi1/1", {NodeIndex(2)}, {"2"}});
  CHECK(bench.on(event::ParentSaid{{"pmi1/1", kSix}}) ==
        "say! children_allgathered children=[2] key=pmi1/1 sizes=[1,1,1,1,1,1] (6 bytes); tell allgathered "
        "pmi1/1");
}

TEST_CASE("the first agent has the result once all below it have given") {
  Bench bench = in_tree(0);
  CHECK(bench.on(event::ChildSaid{NodeIndex(1), {"k", {NodeIndex(2), NodeIndex(1)}, {"2", "1"}}}).empty());
  for (const int child : {3, 4, 5})
    CHECK(bench.on(event::ChildSaid{NodeIndex(child), {"k", {NodeIndex(child)}, {"x"}}}).empty());
  CHECK(bench.on(event::MpiAllgather{"k", "0"}) == "down k to 1 3 4 5; tell allgathered k");
}

TEST_CASE("an agent below that says what it cannot know ends the run") {
  Bench bench = in_tree(0);
  CHECK(
      bench.on(event::ChildSaid{NodeIndex(3), {"k", {NodeIndex(4)}, {"x"}}})
          .starts_with("say error kind=6 what=message 'subtree_allgather' of node 3 does not have one blob"));
}

TEST_CASE("a link that is lost while data are on it is an error once the head had time to see a lost node") {
  Bench bench = joined(5);
  bench.on(event::MpiAllgather{"k", "x"});
  bench.now = 10;
  CHECK(bench.on(event::ParentLost{"connection reset"}) == "wake relay 15");
  CHECK(bench.on(event::RelayDue{})
            .starts_with(
                "say error kind=4 what=the connection to the agent of n1, which the collectives of MPI "
                "need, was lost: connection reset"));
}

TEST_CASE("a link that is lost at the end of the run is none") {
  Bench bench = joined(5);
  CHECK(bench.on(event::ParentLost{""}).empty());
  bench.exited(0, 0);
  CHECK(bench.on(event::RelayDue{}).empty());
}

TEST_CASE("a link that is lost before its next use is an error then") {
  Bench bench = joined(5);
  bench.on(event::ParentLost{""});
  bench.now = 3;
  CHECK(bench.on(event::MpiAllgather{"k", "x"}) == "wake relay 8");
  CHECK(bench.on(event::MpiAllgather{"l", "x"}).empty());
  bench.says(to_agent::Stop{});
  CHECK(bench.on(event::RelayDue{}).empty());
}

TEST_CASE("a machine above that acknowledges nothing is a lost link") {
  Bench bench = joined(5, true);
  bench.on(event::MpiAllgather{"k", "x"});
  bench.now = 2;
  CHECK(bench.on(event::Beat{Seconds(0), Seconds(5)}) == "say! alive; wake beat 3");
  CHECK(bench.on(event::Beat{Seconds(0), Seconds(100)}) == "say! alive; wake relay 7; wake beat 3");
}

TEST_CASE("messages of the tree are out of order where there is none") {
  Bench bench;
  bench.run();
  CHECK(bench.says(to_agent::RelayParent{})
            .starts_with("say error kind=6 what=message 'relay_parent' from the head is out of order"));
}
