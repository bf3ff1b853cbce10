#include "src/run/checker.hpp"

#include <map>
#include <span>

#include <doctest/doctest.h>

#include "src/base/version.hpp"
#include "tests/unit/run/head_world.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

// Nodes that answer what a test lets them answer. Node `slow` sends slowly to all, or while others send; node
// `dragging` does in rings alone, and so does the link from `from` to the next node.
class Cluster {
 public:
  explicit Cluster(int nodes, health::Level level = health::Level::quick)
      : count_(nodes), checker_(World::plan_of(nodes, 1), level, "/work", "ab12", dlrun::test::at(0)) {}

  void come(int node) { take(node, from::Ready{.pid = 1, .version = std::string(kVersion), .protocol = 1}); }
  void come_all() {
    for (int i = 0; i < count_; ++i)
      if (i != down) come(i);
  }
  void fail(int node, const std::string& why) { follow(checker_.no_agent(NodeIndex(node), why, now())); }
  void pass(double seconds) {
    time_ += seconds;
    follow(checker_.passed(now()));
  }

  std::string bad() const {
    std::string out;
    for (const health::NodeReport& node : report().nodes)
      if (node.state == health::State::bad)
        out += node.host + " " + health::text_of(node, health::State::bad) + "\n";
    return out;
  }
  health::Report report() const { return checker_.report(dlrun::test::at(time_)); }
  const Checker& checker() const { return checker_; }

  int down = -1, slow = -1, silent = -1, deaf = -1, dragging = -1, from = -1;
  int slow_times = 1000;  // how often it is slow
  int transfers = 0;
  std::map<int, int> ring_sizes;  // by its number: how many nodes are in rings at that time

 private:
  Checker::Now now() const { return {dlrun::test::at(time_), Seconds(1'700'000'000 + time_)}; }

  template <class Message>
  void take(int node, Message message) {
    follow(checker_.said(NodeIndex(node), message, now()));
  }
  void follow(const Checker::Sends& sends) {
    for (const Checker::Send& send : sends)
      for (const NodeIndex node : send.nodes)
        std::visit([&](const auto& message) { answer(node.get(), message); }, send.message);
    run_rings(sends);
  }
  // Each member tells what came from the node before it: where one is slow, all are.
  void run_rings(const Checker::Sends& sends) {
    std::vector<std::pair<int, to::CheckRing>> members;
    for (const Checker::Send& send : sends)
      if (const auto* ring = std::get_if<to::CheckRing>(&send.message))
        members.emplace_back(send.nodes.at(0).get(), *ring);
    for (std::size_t begin = 0; begin < members.size();) {
      const std::size_t end = begin + static_cast<std::size_t>(members[begin].second.size);
      REQUIRE(end <= members.size());
      run_ring(std::span(members).subspan(begin, end - begin));
      begin = end;
    }
  }
  void run_ring(std::span<const std::pair<int, to::CheckRing>> members) {
    bool is_slow = false;
    for (const auto& [node, ring] : members) {
      CHECK(ring.next.port == 4000 + ring.next.node.get());
      CHECK(ring.next.node.get() == members[static_cast<std::size_t>(ring.place + 1) % members.size()].first);
      is_slow = is_slow || node == dragging || (node == from && ring.next.node.get() == from + 1);
      ++ring_sizes[ring.ring];
    }
    for (const auto& [node, ring] : members)
      take(node,
           from::RingChecked{.ring = ring.ring, .bytes = is_slow ? 1 << 20 : 100 << 20, .took = Seconds(1)});
  }
  void answer(int node, const to::AskClock&) {
    take(node, from::Clock{Seconds(1'700'000'000 + time_ + (node == 2 ? clock_of_2 : 0))});
  }
  void answer(int node, const to::CheckNode& question) {
    CHECK(question.directory == "/work");
    CHECK(static_cast<int>(question.names.size()) == count_);
    if (node != silent)
      take(node, from::NodeChecked{.values = Json::object(), .port = 4000 + node, .addresses = {"10.0.0.1"}});
  }
  void answer(int node, const to::CheckPeers& question) {
    from::PeersChecked out;
    for (const to::CheckedPeer& peer : question.peers) {
      CHECK(peer.port == 4000 + peer.node.get());
      from::PeerChecked one{.node = peer.node};
      if (peer.node.get() == deaf) one.problem = "no answer";
      if (question.send.count() > 0) {
        ++transfers;
        one.took = question.send;
        one.bytes = node == slow && slow_times-- > 0 ? 1000 : 100'000'000;
      }
      out.peers.push_back(one);
    }
    take(node, out);
  }
  template <class Other>
  void answer(int, const Other&) {}

  int count_;
  double time_ = 0;
  Checker checker_;

 public:
  double clock_of_2 = 0;
};

}  // namespace

TEST_CASE("good nodes are done as soon as all have answered") {
  for (const int nodes : {1, 2, 3, 4, 65, 100}) {
    Cluster cluster(nodes);
    cluster.come_all();
    CHECK(cluster.checker().done());
    CHECK(cluster.bad().empty());
    CHECK(static_cast<int>(cluster.report().count(health::State::good)) == nodes);
  }
}

TEST_CASE("a node that sends slowly to all is named, and tried again alone before") {
  Cluster cluster(6);
  cluster.slow = 4;
  cluster.come_all();
  CHECK(cluster.checker().done());
  CHECK(cluster.bad().starts_with("n5 network: it sends"));
  CHECK(cluster.transfers == 3 * 6 + 2 * 2);  // three rounds of three pairs, two of the slow one with another
}

TEST_CASE("a node that was slow while others sent, and is not alone, is good") {
  Cluster cluster(6);
  cluster.slow = 4, cluster.slow_times = 3;
  cluster.come_all();
  CHECK(cluster.checker().done());
  CHECK(cluster.bad().empty());
}

TEST_CASE("with level full all nodes run allreduces, first in pairs, then together") {
  Cluster cluster(6, health::Level::full);
  cluster.come_all();
  CHECK(cluster.checker().done());
  CHECK(cluster.ring_sizes == std::map<int, int>{{1, 6}, {2, 6}, {3, 6}, {4, 6}});
  const Json values = cluster.report().nodes[0].values.at("allreduce");
  CHECK(values.at("rate") == values.at("usual"));
  CHECK(cluster.report().count(health::State::good) == 6);
  Cluster quick(6);
  quick.come_all();
  CHECK(quick.ring_sizes.empty());
}

TEST_CASE("a node that is slow in rings alone is named; so is a link") {
  Cluster cluster(8, health::Level::full);
  cluster.dragging = 5;
  cluster.come_all();
  CHECK(cluster.checker().done());
  CHECK(cluster.bad() == "n6 allreduce: it slows an allreduce down to 1.0 MiB/s; 100.0 MiB/s is usual\n");
  Cluster other(8, health::Level::full);
  other.from = 3;
  other.come_all();
  CHECK(other.bad().empty());
  const health::Report report = other.report();
  CHECK(report.count(health::State::warning) == 2);
  CHECK(health::text_of(report.nodes[3], health::State::warning) ==
        "allreduce: the link between it and n5 slows an allreduce down to 1.0 MiB/s; 100.0 MiB/s is usual");
}

TEST_CASE("a node that is known to be slow is in no ring") {
  Cluster cluster(6, health::Level::full);
  cluster.slow = 4;
  cluster.come_all();
  CHECK(cluster.bad().starts_with("n5 network: it sends"));
  for (const auto& [ring, size] : cluster.ring_sizes) CHECK(size <= 5);
  CHECK_FALSE(cluster.ring_sizes.empty());
}

TEST_CASE("a node without an agent, and one that never comes") {
  Cluster cluster(4);
  cluster.down = 3;
  cluster.fail(2, "connection refused");
  cluster.come_all();
  CHECK_FALSE(cluster.checker().done());
  CHECK(cluster.checker().phase() == "checking 4 nodes: 3 answered");
  cluster.pass(9);
  CHECK_FALSE(cluster.checker().done());
  cluster.pass(2);
  CHECK(cluster.checker().done());
  CHECK(cluster.bad() ==
        "n3 agent: connection refused\n"
        "n4 agent: no agent from there within 10.0s\n");
}

TEST_CASE("before most nodes have come, launch.start-timeout counts") {
  Cluster cluster(4);
  cluster.come(0);
  cluster.pass(119);
  CHECK_FALSE(cluster.checker().done());
  cluster.pass(2);
  CHECK(cluster.checker().done());
}

TEST_CASE("an agent that does not answer holds nobody up for long") {
  Cluster cluster(3);
  cluster.silent = 1;
  cluster.come_all();
  CHECK_FALSE(cluster.checker().done());
  cluster.pass(11);
  CHECK(cluster.checker().done());
  CHECK(cluster.bad() == "n2 agent: its agent did not answer within 10.0s\n");
}

TEST_CASE("a node that nobody reaches") {
  Cluster cluster(4);
  cluster.deaf = 0;
  cluster.come_all();
  CHECK(cluster.checker().done());
  CHECK(cluster.bad() == "n1 network: 3 of 3 nodes cannot reach it\n");
}

TEST_CASE("a wrong clock") {
  Cluster cluster(4);
  cluster.clock_of_2 = -3600;
  cluster.come_all();
  CHECK(cluster.bad() == "n3 clock: its clock is 1h00m behind\n");
}
