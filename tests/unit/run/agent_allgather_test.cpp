#include "src/run/agent_allgather.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using Blobs = std::vector<std::string>;

TEST_CASE("blobs come back in node order once all nodes gave theirs, and the key is free again") {
  job::AgentAllgather exchange(3);
  for (int round = 0; round < 2; ++round) {
    CHECK_FALSE(exchange.give("fence", NodeIndex(2), "c").has_value());
    CHECK_FALSE(exchange.give("barrier", NodeIndex(0), "x").has_value());
    CHECK_FALSE(exchange.give("fence", NodeIndex(0), "a").has_value());
    CHECK(exchange.give("fence", NodeIndex(1), "") == Blobs{"a", "", "c"});
  }
}

TEST_CASE("one node answers itself") {
  job::AgentAllgather exchange(1);
  CHECK(exchange.give("k", NodeIndex(0), "alone") == Blobs{"alone"});
}
