#include "src/run/agent_arrivals.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

plan::Plan plan_of(int nodes) {
  plan::Plan plan;
  for (int i = 0; i < nodes; ++i)
    plan.nodes.push_back({.index = NodeIndex(i), .host = HostName(fmt::format("n{:02}", i + 1))});
  return plan;
}

Error why(std::string what, std::string hint = {}) {
  return {.kind = ErrorKind::unavailable,
          .what = std::move(what),
          .where = {},
          .hint = std::move(hint),
          .also = {}};
}

}  // namespace

TEST_CASE("all here is no error") {
  const plan::Plan plan = plan_of(2);
  job::AgentArrivals arrivals(plan, "ssh");
  arrivals.connected(NodeIndex(1));
  CHECK_FALSE(arrivals.all_answered());
  arrivals.connected(NodeIndex(0));
  CHECK(arrivals.all_here());
  CHECK_FALSE(arrivals.error().has_value());
}

TEST_CASE("an agent that goes before the last one comes is none") {
  const plan::Plan plan = plan_of(2);
  job::AgentArrivals arrivals(plan, "ssh");
  arrivals.connected(NodeIndex(0));
  arrivals.failed(NodeIndex(0), why("the agent exited without an error message"));
  CHECK_FALSE(arrivals.all_answered());
  arrivals.connected(NodeIndex(1));
  CHECK(arrivals.all_answered());
  CHECK_FALSE(arrivals.all_here());
  CHECK(arrivals.missing_hosts() == std::vector<std::string>{"n01"});
}

TEST_CASE("every node without an agent is named with its reason, equal reasons once") {
  const plan::Plan plan = plan_of(16);
  job::AgentArrivals arrivals(plan, "ssh");
  for (int node = 0; node < 16; ++node)
    if (node != 2 && node != 6 && node != 10) arrivals.connected(NodeIndex(node));
  arrivals.failed(NodeIndex(10), why("connection refused on port 22"));
  arrivals.failed(NodeIndex(6), why("its host key is not known", "ssh n07 once"));
  arrivals.failed(NodeIndex(2), why("connection refused on port 22", "start sshd there"));
  CHECK(arrivals.all_answered());
  CHECK_FALSE(arrivals.all_here());
  CHECK(arrivals.error()->text() ==
        "3 of 16 nodes cannot be reached by ssh: n03, n07, n11\n"
        "  n03, n11: connection refused on port 22\n"
        "  n07: its host key is not known\n"
        "  hint: start sshd there");
}

TEST_CASE("time that is up fails the nodes that have not answered, and no others") {
  const plan::Plan plan = plan_of(3);
  job::AgentArrivals arrivals(plan, "slurm");
  arrivals.connected(NodeIndex(0));
  arrivals.failed(NodeIndex(1), why("refused"));
  arrivals.give_up("no agent from there within 2min");
  CHECK(arrivals.error()->text() ==
        "2 of 3 nodes cannot be reached by slurm: n02, n03\n"
        "  n02: refused\n"
        "  n03: no agent from there within 2min");
}

TEST_CASE("many names are not all listed") {
  const plan::Plan plan = plan_of(100);
  job::AgentArrivals arrivals(plan, "ssh");
  arrivals.give_up("nothing");
  CHECK(arrivals.error()->what.ends_with("n12 and 88 more"));
}

TEST_CASE("a single node needs no list") {
  const plan::Plan plan = plan_of(1);
  job::AgentArrivals arrivals(plan, "local");
  arrivals.failed(NodeIndex(0), why("no memory"));
  CHECK(arrivals.error()->text() == "n01 cannot be reached by local: no memory");
}
