#include "src/run/setup_watch.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

plan::Plan two_nodes(Seconds limit) {
  plan::Plan plan;
  plan.limits.setup_timeout = limit;
  for (int i = 0; i < 2; ++i)
    plan.nodes.push_back({.index = NodeIndex(i), .host = HostName(fmt::format("n{}", i + 1))});
  return plan;
}

}  // namespace

TEST_CASE("the nodes that still set up are named, and late ones after the limit") {
  const plan::Plan plan = two_nodes(Seconds(100));
  job::SetupWatch watch(plan, at(0));
  CHECK(watch.phase() == "setting up the environment on n1, n2");
  CHECK(watch.waiting_text(at(29)).empty());
  CHECK(watch.waiting_text(at(31)) ==
        "the setup of the environment has run for 31.0s, still on n1, n2 (launch.setup-timeout: 1m40s)");
  CHECK(watch.waiting_text(at(40)).empty());
  watch.ready(NodeIndex(0));
  CHECK(watch.waiting_text(at(70)).find("still on n2 ") != std::string::npos);
  CHECK(watch.late(at(99)).empty());
  REQUIRE(watch.late(at(100)).size() == 1);
  CHECK(watch.late(at(100))[0] == NodeIndex(1));
  CHECK(watch.timeout_text() ==
        "the setup of its environment did not end within 1m40s (launch.setup-timeout)");
  watch.ready(NodeIndex(1));
  CHECK(watch.all_ready());
  CHECK(watch.late(at(1000)).empty());
  CHECK(watch.phase() == "starting the ranks");
}

TEST_CASE("no limit") {
  const plan::Plan plan = two_nodes(Seconds(0));
  job::SetupWatch watch(plan, at(0));
  CHECK(watch.late(at(1e6)).empty());
  CHECK(watch.waiting_text(at(60)).find("launch.setup-timeout: none") != std::string::npos);
}
