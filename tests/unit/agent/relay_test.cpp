#include "src/agent/relay.hpp"

#include <deque>
#include <functional>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;
using Route = Relay::Route;

namespace {

// The relays of all agents, each action carried out at once: what goes up or down arrives. Those in `by_head`
// do not reach the agent above.
class Forest {
 public:
  explicit Forest(int nodes, std::set<int> by_head = {}) : by_head_(std::move(by_head)), told(nodes) {
    const auto tree = std::make_shared<const RelayTree>(nodes);
    for (int node = 0; node < nodes; ++node) relays_.emplace_back(tree, NodeIndex(node));
    for (int node = 1; node < nodes; ++node)
      perform(node, by_head_.contains(node) ? relays_[node].no_parent() : relays_[node].parent_joined());
  }

  void give(int node, const std::string& key, std::string blob) {
    perform(node, relays_[static_cast<std::size_t>(node)].gave(key, std::move(blob)));
  }

  int links = 0, through_head = 0;

 private:
  void perform(int node, const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* up = std::get_if<action::SendToParent>(&action)) go_up(node, up->part, Route::direct);
      if (const auto* down = std::get_if<action::SendToChildren>(&action))
        for (const NodeIndex child : down->children) go_down(child, *down->all);
      if (const auto* send = std::get_if<action::Send>(&action)) by_head(node, send->message);
      if (const auto* tell = std::get_if<action::TellAllgathered>(&action))
        told[static_cast<std::size_t>(node)].push_back(*tell->all);
    }
  }
  void go_up(int node, const Relay::Part& part, Route route) {
    ++(route == Route::direct ? links : through_head);
    const int parent = relays_[static_cast<std::size_t>(node)].parent()->get();
    auto next = relays_[static_cast<std::size_t>(parent)].child_gave(NodeIndex(node), part, route);
    REQUIRE(next.has_value());
    perform(parent, *next);
  }
  void go_down(NodeIndex child, const protocol::to_agent::Allgathered& all) {
    ++links;
    perform(child.get(), relays_[static_cast<std::size_t>(child.get())].allgathered(all));
  }
  void by_head(int node, const protocol::FromAgent& message) {
    if (const auto* part = std::get_if<Relay::Part>(&message)) return go_up(node, *part, Route::by_head);
    const auto& all = std::get<protocol::from_agent::ChildrenAllgathered>(message);
    for (const NodeIndex child : all.children) {
      CHECK(by_head_.contains(child.get()));
      ++through_head;
      perform(child.get(), relays_[static_cast<std::size_t>(child.get())].allgathered({all.key, all.blobs}));
    }
  }

  std::set<int> by_head_;
  std::deque<Relay> relays_;

 public:
  std::vector<std::vector<protocol::to_agent::Allgathered>> told;  // to the ranks, by node
};

std::string refusal(Relay& relay, int child, Relay::Part part) {
  const auto answer = relay.child_gave(NodeIndex(child), std::move(part), Route::direct);
  return answer ? "taken" : answer.error().what;
}

// The leaf of three nodes whose parent is node 0.
Relay leaf() {
  return Relay(std::make_shared<const RelayTree>(3), NodeIndex(1));
}

}  // namespace

TEST_CASE("every node's ranks are told all blobs in node order, whoever gives last") {
  for (const int last : {0, 1, 7, 39}) {
    Forest forest(40);
    std::vector<std::string> wanted;
    for (int node = 0; node < 40; ++node) wanted.push_back(fmt::format("blob {}", node));
    for (int node = 0; node < 40; ++node)
      if (node != last) forest.give(node, "fence", wanted[static_cast<std::size_t>(node)]);
    for (const auto& told : forest.told) CHECK(told.empty());
    forest.give(last, "fence", wanted[static_cast<std::size_t>(last)]);
    for (const auto& told : forest.told) {
      REQUIRE(told.size() == 1);
      CHECK(told[0].key == "fence");
      CHECK(told[0].blobs == wanted);
    }
    CHECK(forest.links == 2 * 39);  // each once up and once down
    CHECK(forest.through_head == 0);
  }
}

TEST_CASE("collectives may overlap") {
  Forest forest(6);
  for (int node = 0; node < 6; ++node) forest.give(node, "one", "1");
  for (int node = 0; node < 3; ++node) forest.give(node, "two", "2");
  for (int node = 0; node < 6; ++node) forest.give(node, "three", "3");
  for (const auto& told : forest.told) REQUIRE(told.size() == 2);
  CHECK(forest.told[4][1].key == "three");
  for (int node = 3; node < 6; ++node) forest.give(node, "two", "2");
  for (const auto& told : forest.told) CHECK(told.size() == 3);
}

TEST_CASE("a link that cannot be made goes through the head, and no other") {
  Forest forest(40, {1, 3});
  for (int node = 39; node >= 0; --node) forest.give(node, "fence", std::to_string(node));
  for (const auto& told : forest.told) {
    REQUIRE(told.size() == 1);
    CHECK(told[0].blobs[39] == "39");
  }
  CHECK(forest.through_head == 4);
  CHECK(forest.links == 2 * 37);
}

TEST_CASE("an agent alone answers itself") {
  Relay relay(std::make_shared<const RelayTree>(1), NodeIndex(0));
  const auto actions = relay.gave("k", "b");
  REQUIRE(actions.size() == 1);
  CHECK(std::get<action::TellAllgathered>(actions[0]).all->blobs == std::vector<std::string>{"b"});
}

TEST_CASE("what is given before the agent above is reached goes up then") {
  Relay relay = leaf();
  CHECK(relay.gave("a", "1").empty());
  CHECK(relay.gave("b", "2").empty());
  const auto actions = relay.parent_joined();
  REQUIRE(actions.size() == 2);
  CHECK(std::get<action::SendToParent>(actions[1]).part.key == "b");
  CHECK(relay.gave("c", "3").size() == 1);
}

TEST_CASE("a lost link matters to what is under way on it, and to what comes after") {
  Relay relay = leaf();
  (void)relay.parent_joined();
  CHECK(relay.gave("a", "1").size() == 1);
  CHECK(relay.allgathered({"a", {"0", "1", "2"}}).size() == 1);
  relay.parent_lost();
  CHECK_FALSE(relay.is_stuck());
  CHECK(relay.gave("b", "1").empty());
  CHECK(relay.is_stuck());
}

TEST_CASE("a result that nobody here waits for belongs to another run") {
  Relay relay = leaf();
  (void)relay.parent_joined();
  CHECK(relay.allgathered({"old", {"0", "1", "2"}}).empty());
}

TEST_CASE("a child speaks for the nodes below it, once each, and for no other") {
  // Node 1 of 40 is above 2, 5, 8 and 10.
  const auto whole = std::make_shared<const RelayTree>(40);
  Relay relay(whole, NodeIndex(1));
  REQUIRE(relay.children().front() == NodeIndex(2));
  const RelayTree& tree = *whole;
  Relay::Part good{.key = "k", .nodes = {}, .blobs = {}};
  for (int node = 2; node < 2 + tree.size_of(NodeIndex(2)); ++node) {
    good.nodes.push_back(NodeIndex(node));
    good.blobs.push_back("x");
  }
  Relay::Part part = good;
  CHECK(refusal(relay, 3, good) ==
        "message 'subtree_allgather' of node 3 came to an agent that is not above it");
  part.blobs.pop_back();
  const std::string incomplete =
      "message 'subtree_allgather' of node 2 does not have one blob of each node below it";
  CHECK(refusal(relay, 2, part) == incomplete);
  part.nodes.pop_back();
  CHECK(refusal(relay, 2, part) == incomplete);
  part = good;
  part.nodes.back() = NodeIndex(39);
  CHECK(refusal(relay, 2, part) == incomplete);
  part.nodes.back() = NodeIndex(2);
  CHECK(refusal(relay, 2, part) == incomplete);
  CHECK(refusal(relay, 2, good) == "taken");
  CHECK(refusal(relay, 2, good) == "message 'subtree_allgather' of node 2 came twice for 'k'");
}
