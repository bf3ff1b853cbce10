#include "src/process/descendants.hpp"

#include <algorithm>
#include <csignal>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/child.hpp"

using namespace dlrun;

TEST_CASE("a grandchild in a session of its own is found after its parent died, and can be ended") {
  REQUIRE(become_subreaper().has_value());
  const auto pid =
      start_child({.argv = {"bash", "-c", "setsid sleep 1000 & while ! pgrep -s $! >/dev/null; do :; done"},
                   .environment = Environment::of_this_process(),
                   .working_directory = "",
                   .inherited_fds = {}});
  REQUIRE(pid.has_value());
  ::waitpid(*pid, nullptr, 0);
  const auto left = descendants();
  REQUIRE(left.size() == 1);
  ::kill(left[0], SIGKILL);
  while (!descendants().empty()) ::usleep(1000);
  reap_orphans({});
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no child at all is left
}
