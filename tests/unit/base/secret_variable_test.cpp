// A secret is taken out of the environment once. That /proc does not show it either is seen on real agents
// (cluster-security).
#include "src/base/secret_variable.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "src/base/environment.hpp"

using namespace dlrun;

TEST_CASE("a secret is taken once, and children do not get it") {
  REQUIRE(::setenv("DLRUN_TEST_SECRET", "0123", 1) == 0);
  const char* const where = ::getenv("DLRUN_TEST_SECRET");
  CHECK(take_secret("DLRUN_TEST_SECRET") == "0123");
  CHECK(where[0] == '\0');  // its place is wiped
  CHECK(take_secret("DLRUN_TEST_SECRET").empty());
  CHECK_FALSE(Environment::of_this_process().find("DLRUN_TEST_SECRET"));
}
