#include "src/process/supervisor.hpp"

#include <csignal>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using S = Supervisor;

namespace {

// Actions as text: "TERM", "wake 0.3", "finish".
std::string text(const std::vector<S::Action>& actions) {
  std::string out;
  for (const auto& action : actions) {
    if (!out.empty()) out += " ";
    if (const auto* signal = std::get_if<S::Signal>(&action))
      out += signal->number == SIGTERM ? "TERM" : "KILL";
    if (const auto* wake = std::get_if<S::WakeAt>(&action))
      out += fmt::format("wake {:.1f}", Seconds(wake->when - at(0)).count());
    if (std::holds_alternative<S::Finish>(action)) out += "finish";
  }
  return out;
}

const S::Policy kPolicy{.failure_window = Seconds(0.3), .grace = Seconds(10)};

}  // namespace

TEST_CASE("members that end in order finish the job, once") {
  S supervisor(2, kPolicy);
  CHECK(text(supervisor.on(S::Gone{0}, at(1))).empty());
  CHECK(text(supervisor.on(S::Gone{1}, at(2))) == "finish");
  CHECK(text(supervisor.on(S::Gone{1}, at(3))).empty());
  CHECK_FALSE(supervisor.first_failure().has_value());
}

TEST_CASE("a failure settles, then TERM, then KILL, and the first one is the first_failure") {
  S supervisor(3, kPolicy);
  CHECK(text(supervisor.on(S::Failed{{1, 3, "exit code 3"}}, at(1))) == "wake 1.3");
  CHECK(text(supervisor.on(S::Gone{1}, at(1))).empty());
  CHECK(text(supervisor.on(S::Failed{{2, 137, "killed"}}, at(1.1))).empty());
  CHECK(text(supervisor.on(S::Tick{}, at(1.2))).empty());
  CHECK(text(supervisor.on(S::Tick{}, at(1.3))) == "TERM wake 11.3");
  CHECK(text(supervisor.on(S::Tick{}, at(11.2))).empty());
  CHECK(text(supervisor.on(S::Tick{}, at(11.3))) == "KILL");
  CHECK(text(supervisor.on(S::Gone{2}, at(11.4))).empty());
  CHECK(text(supervisor.on(S::Gone{0}, at(11.4))) == "finish");
  CHECK(supervisor.first_failure()->member == 1);
  CHECK(supervisor.first_failure()->code == 3);
}

TEST_CASE("an urgent failure does not settle") {
  S supervisor(2, kPolicy);
  CHECK(text(supervisor.on(S::Failed{{0, 7, "called MPI_Abort(7)"}, S::Urgency::now}, at(1))) ==
        "TERM wake 11.0");
  S settling(2, kPolicy);
  settling.on(S::Failed{{0, 1, "exit code 1"}}, at(1));
  CHECK(text(settling.on(S::Failed{{1, 7, "abort"}, S::Urgency::now}, at(1.1))) == "TERM wake 11.1");
}

TEST_CASE("a polite stop is TERM at once; a second one keeps the grace; one that cannot wait is KILL") {
  S supervisor(1, kPolicy);
  CHECK(text(supervisor.on(S::Stop{S::Urgency::polite}, at(1))) == "TERM wake 11.0");
  CHECK(text(supervisor.on(S::Stop{S::Urgency::polite}, at(2))).empty());
  CHECK(text(supervisor.on(S::Stop{S::Urgency::now}, at(2.5))) == "KILL");
  CHECK(text(supervisor.on(S::Stop{S::Urgency::now}, at(3))).empty());
  CHECK(text(supervisor.on(S::Gone{0}, at(4))) == "finish");
  CHECK(supervisor.stop_was_asked());
}

TEST_CASE("a stop during the terminating of a failure does not start the grace anew") {
  S supervisor(1, kPolicy);
  supervisor.on(S::Failed{{0, 1, "exit code 1"}, S::Urgency::now}, at(0));
  CHECK(text(supervisor.on(S::Stop{S::Urgency::polite}, at(5))).empty());
  CHECK(text(supervisor.on(S::Tick{}, at(10))) == "KILL");
}
