#include "src/health/bisection.hpp"

#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace dlrun::health;

namespace {

using Group = Bisection::Group;

// Nodes in rings: a ring is as fast as its slowest link, and a link as its slower end.
struct Network {
  std::set<int> slow_nodes = {};
  std::set<std::pair<int, int>> slow_links = {};
  std::size_t slow_from = 10'000;  // rings of so many nodes are slow whoever they are
  int noise = -1;                  // which measured group is slow, once

  double rate(const Group& group) {
    REQUIRE(group.size() > 1);
    bool slow = group.size() >= slow_from || measured++ == noise;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const int a = group[i], b = group[(i + 1) % group.size()];
      slow = slow || slow_nodes.contains(a) || slow_links.contains({a, b});
    }
    return slow ? 5 : 100;
  }
  int measured = 0;
};

// What is found, and in how many steps.
std::string found(int nodes, Network network, int* steps = nullptr) {
  Group all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  Bisection bisection(all);
  for (int count = 0; !bisection.groups().empty(); ++count) {
    std::vector<double> rates;
    std::set<int> busy;
    for (const Group& group : bisection.groups()) {
      for (const int node : group) CHECK(busy.insert(node).second);
      rates.push_back(network.rate(group));
    }
    bisection.measured(rates);
    REQUIRE(count < 100);
    if (steps != nullptr) *steps = count + 1;
  }
  std::string out;
  for (const Bisection::Fault& fault : bisection.faults())
    out += fmt::format("{} {};",
                       fault.kind == Bisection::Kind::node   ? "node"
                       : fault.kind == Bisection::Kind::link ? "link"
                                                             : "together",
                       fmt::join(fault.nodes, " "));
  return out;
}

}  // namespace

TEST_CASE("good nodes: some pairs, all together, and it is over") {
  for (const int nodes : {0, 1, 2, 3, 4, 7, 64, 1000}) {
    int steps = 0;
    CHECK(found(nodes, {}, &steps).empty());
    CHECK(steps <= 4);
  }
}

TEST_CASE("each node that is slow is named, in few steps") {
  for (const int nodes : {3, 4, 5, 6, 7, 16, 33})
    for (int slow = 0; slow < nodes; ++slow) {
      CAPTURE(nodes);
      CAPTURE(slow);
      CHECK(found(nodes, {.slow_nodes = {slow}}) == fmt::format("node {};", slow));
    }
  int steps = 0;
  CHECK(found(1000, {.slow_nodes = {777}}, &steps) == "node 777;");
  CHECK(steps <= 4 + 3 * 10 + 3);
}

TEST_CASE("each link of the ring that is slow is named, in both directions") {
  for (const int nodes : {4, 5, 6, 7, 16, 33})
    for (int i = 0; i < nodes; ++i) {
      const int next = (i + 1) % nodes;
      CAPTURE(nodes);
      CAPTURE(i);
      const std::string name = fmt::format("link {} {};", std::min(i, next), std::max(i, next));
      CHECK(found(nodes, {.slow_links = {{i, next}}}) == name);
    }
  CHECK(found(16, {.slow_links = {{4, 3}}}).empty());  // no ring goes that way: the job's does not, too
}

TEST_CASE("several at a time") {
  CHECK(found(16, {.slow_nodes = {2, 11}}) == "node 2;node 11;");
  CHECK(found(16, {.slow_nodes = {2}, .slow_links = {{8, 9}}}) == "node 2;link 8 9;");
}

TEST_CASE("nodes that are slow only together") {
  CHECK(found(8, {.slow_from = 8}) == "together 0 1 2 3 4 5 6 7;");
  CHECK(found(8, {.slow_from = 4}) == "together 0 1 2 3;together 4 5 6 7;");
}

TEST_CASE("who was slow once, and is not alone, is good") {
  for (int noise = 0; noise < 25; ++noise) CHECK(found(16, {.noise = noise}).empty());
}
