#include "src/agent/prolog_limits.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::agent;

TEST_CASE("soft limits in the kernel's text") {
  const auto limits = soft_limits(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              unlimited            unlimited            seconds   \n"
      "Max open files            777                  4096                 files     \n"
      "Max new thing             3                    4                    things    \n"
      "Max locked memory         many                 4                    bytes     \n");
  CHECK(limits.size() == 2);
  CHECK(limits.at(RLIMIT_CPU) == RLIM_INFINITY);
  CHECK(limits.at(RLIMIT_NOFILE) == 777);
}

TEST_CASE("limits and mask are this process's for a while, and its own again") {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const mode_t mask = ::umask(022);
  {
    const WithLimits with({.soft = {{RLIMIT_NOFILE, 99}}, .umask = 027});
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    CHECK(now.rlim_cur == 99);
    CHECK(now.rlim_max == before.rlim_max);
    CHECK(::umask(027) == 027);
  }
  rlimit after{};
  ::getrlimit(RLIMIT_NOFILE, &after);
  CHECK(after.rlim_cur == before.rlim_cur);
  CHECK(::umask(mask) == 022);
}
