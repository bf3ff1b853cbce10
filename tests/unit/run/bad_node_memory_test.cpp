// What is remembered of nodes that checks found bad.
#include "src/run/bad_node_memory.hpp"

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;

TEST_CASE("a node is remembered for its own faults, not for another version of dlrun there") {
  const test::Folder folder;
  const Environment environment = Environment::from_entries({"XDG_STATE_HOME=" + folder.path.string()});
  const health::BadNodes memory(environment, "slurm");
  const Instant now(Milliseconds(1'700'000'000'000));
  REQUIRE(memory.remember({"c3", "space: full", now + std::chrono::hours(1)}));
  health::Report report = health::judge(
      health::Level::quick, "/scratch",
      {{.host = "c1", .no_agent = "connection refused"},
       {.host = "c2", .no_agent = "version mismatch", .fault_of = health::FaultOf::installation},
       {.host = "c3", .no_agent = "version mismatch", .fault_of = health::FaultOf::installation}});
  CHECK(report.bad_hosts() == std::vector<std::string>{"c1", "c2", "c3"});
  CHECK(learn(memory, report, std::chrono::hours(1), now).empty());
  std::string known;
  for (const health::BadNode& node : memory.all(now)) known += node.host + ": " + node.reason + "; ";
  CHECK(known == "c1: agent: connection refused; c3: space: full; ");
}
