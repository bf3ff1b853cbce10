#include "src/agent/interface_choice.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

TEST_CASE("a peer that refuses a connection has been reached, from the interface that is named") {
  CHECK(agent::interface_towards({"127.0.0.1"}, Seconds(5)).name == "lo");
}

TEST_CASE("where nothing answers there is no choice") {
  const auto choice = agent::interface_towards({"no-such-host.invalid"}, Seconds(0.1));
  CHECK_FALSE(choice.name.has_value());
  CHECK(choice.why_not == "no-such-host.invalid did not answer");
}
