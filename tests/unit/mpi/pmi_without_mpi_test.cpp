// The training runtime's collectives under our PMI-1 service with no MPI in the process: on one node and
// between pretend nodes.
#include <doctest/doctest.h>

#include "tests/unit/mpi/world.hpp"

namespace dlrun::test {

TEST_CASE("ranks meet through the launcher's PMI service alone") {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, std::vector<int>{0, 1, 1}}) {
    WorldSpec spec{.mpi = plan::MpiProtocol::pmi1, .node_of_rank = nodes, .argv = {COMM_PROGRAM}};
    spec.environment = {{"DLRUN_COMM", "pmi"}};
    const WorldEnd end = run_world(spec);
    INFO(end.output);
    CHECK(end.output.find(fmt::format("of {}: PMI, without MPI", nodes.size())) != std::string::npos);
    for (const RankEnd& rank : end.ranks) {
      CHECK(rank.code == 0);
      CHECK(rank.connected);
      CHECK(rank.finalized);
    }
  }
}

TEST_CASE("without a PMI service it is an error that says what to do") {
  WorldSpec spec{.mpi = plan::MpiProtocol::none, .node_of_rank = {0, 0}, .argv = {COMM_PROGRAM}};
  spec.environment = {{"DLRUN_COMM", "pmi"}};
  const WorldEnd end = run_world(spec);
  CHECK(end.output.find("PMI_FD is '', not a number: no PMI-1 service is offered here") != std::string::npos);
  CHECK(end.output.find("hint: start the job with --mpi pmi1") != std::string::npos);
}

}  // namespace dlrun::test
