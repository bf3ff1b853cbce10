#include "src/agent/rank_end.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using agent::judge;
using agent::RankEnd;

TEST_CASE("without MPI an exit code says it all") {
  CHECK_FALSE(judge(RankEnd{}, ExitStatus{}).has_value());
  CHECK(judge(RankEnd{}, ExitStatus{.exit_code = 3})->reason == "exit code 3");
  CHECK(judge(RankEnd{}, ExitStatus{.signal = 9})->code == 137);
}

TEST_CASE(
    "a rank that is killed while the node is out of memory is told from one that is killed by somebody") {
  const RankEnd starved{.out_of_memory = true};
  CHECK(
      judge(starved, ExitStatus{.signal = 9})->reason ==
      "killed by SIGKILL (9): the node ran out of memory, and the kernel killed a process to get some back");
  CHECK(judge(starved, ExitStatus{.signal = 9})->code == 137);
  CHECK(judge(starved, ExitStatus{.signal = 15})->reason == "killed by SIGTERM (15)");
}

TEST_CASE("75 is an orderly stop with a checkpoint, not a failure") {
  CHECK_FALSE(judge(RankEnd{}, ExitStatus{.exit_code = 75}).has_value());
}

TEST_CASE("a rank that never joined its MPI world would have run alone: an error although it exited 0") {
  const auto failure = judge(RankEnd{.mpi = true}, ExitStatus{});
  REQUIRE(failure.has_value());
  CHECK(failure->code == 69);
  CHECK(failure->reason.find("rank 0 of 1") != std::string::npos);
}

TEST_CASE("a rank that leaves its world without MPI_Finalize has failed it") {
  CHECK(judge(RankEnd{.mpi = true, .joined_mpi = true}, ExitStatus{})->code == 71);
  CHECK_FALSE(judge(RankEnd{.mpi = true, .joined_mpi = true, .left_mpi = true}, ExitStatus{}).has_value());
}
