#include "src/agent/open_files.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

TEST_CASE("what the limit of open files cannot hold is said with the numbers") {
  CHECK(check_open_files(10, 150, 1024).has_value());
  const auto few = check_open_files(10, 150, 256);
  REQUIRE_FALSE(few.has_value());
  CHECK(few.error().kind == ErrorKind::unavailable);
  CHECK(few.error().what == "150 ranks on one node need about 472 open files, and the limit is 256");
}

TEST_CASE("the soft limit is raised to the hard one, and what it was is told") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low = before;
  low.rlim_cur = 64;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  const auto was = raise_open_files();
  REQUIRE(was.has_value());
  CHECK(was->rlim_cur == 64);
  rlimit now{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &now) == 0);
  CHECK(now.rlim_cur == std::min<rlim_t>(before.rlim_max, rlim_t{1} << 20));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}
