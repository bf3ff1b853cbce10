// Stacks of many ranks as few groups: which function tells the most, who is together, what comes first.
#include "src/record/stack_fold.hpp"

#include <doctest/doctest.h>

namespace dlrun::job {
namespace {

RankStack stack(int rank, StackFrames native, StackFrames python = {}) {
  return {.rank = Rank(rank),
          .pid = 100 + rank,
          .program = "train",
          .state = 'S',
          .native = std::move(native),
          .python = std::move(python)};
}

const StackFrames kAllreduce{{"poll", "libc.so.6"},
                             {"progress", "libmpi.so.40"},
                             {"PMPI_Allreduce", "libmpi.so.40"},
                             {"main", "train"}};

}  // namespace

TEST_CASE("the few ranks that are elsewhere come before the many that wait for them") {
  StackFold fold;
  for (int rank = 0; rank < 63; ++rank) {
    StackFrames frames = kAllreduce;
    frames[0].function = rank % 2 == 0 ? "poll" : "epoll_wait";  // inside of the call all are alike
    fold.add(rank == 7 ? stack(7, {{"read", "libc.so.6"}, {"read_batch", "train"}, {"main", "train"}})
                       : stack(rank, frames),
             rank < 32 ? "n1" : "n2");
  }
  CHECK(fold.headline() == "rank 7 in read_batch; 62 ranks (0-6,8-62) in MPI_Allreduce");
  const Json groups = fold.groups();
  REQUIRE(groups.size() == 2);
  CHECK(groups[1]["hosts"] == Json::array({"n1", "n2"}));
  CHECK(groups[1]["native"][0]["function"] == "poll");
  CHECK(fold.read() == 63);
}

TEST_CASE("the same function that was called from another one is another place") {
  StackFold fold;
  fold.add(stack(0, {{"step", "train"}, {"main", "train"}}), "n1");
  fold.add(stack(1, {{"step", "train"}, {"warm_up", "train"}, {"main", "train"}}), "n1");
  CHECK(fold.groups().size() == 2);
}

TEST_CASE("a call of MPI or NCCL tells more than Python, and Python more than the interpreter") {
  const StackFrames interpreter{{"clock_nanosleep", "libc.so.6"}, {"_PyEval_EvalFrameDefault", "python3.11"}};
  const StackFrames python{{"recv", "/usr/lib/python3.11/socket.py:3"},
                           {"load", "/venv/lib/python3.11/site-packages/torch/x.py:1"},
                           {"read_batch", "train.py:4"},
                           {"<module>", "train.py:9"}};
  StackFold fold;
  fold.add(stack(0, interpreter, python), "n1");
  CHECK(fold.headline() == "rank 0 in read_batch");
  StackFold nccl;
  nccl.add(stack(0, {{"poll", "libc.so.6"}, {"ncclGroupEnd", "libnccl.so.2"}}, python), "n1");
  CHECK(nccl.headline() == "rank 0 in ncclGroupEnd");
}

TEST_CASE("a rank without functions is told by what the kernel says of it, with the reason") {
  RankStack none = stack(3, {});
  none.waits = "nfs_wait_bit_killable";
  none.problems = {"ptrace is not allowed"};
  StackFold fold;
  fold.add(none, "n1");
  CHECK(fold.headline() == "rank 3 waiting in the kernel in nfs_wait_bit_killable");
  CHECK(fold.read() == 0);
  CHECK(fold.problems()[0]["problem"] == "ptrace is not allowed");
  RankStack stopped = stack(4, {});
  stopped.state = 'T';
  StackFold other;
  other.add(stopped, "n1");
  CHECK(other.headline() == "rank 4 stopped, as by SIGSTOP");
  stopped.native = kAllreduce;
  StackFold with_frames;
  with_frames.add(stopped, "n1");
  CHECK(with_frames.headline() == "rank 4 stopped, in MPI_Allreduce");
}

TEST_CASE("other threads are folded over ranks, and files of NCCL are named") {
  StackFold fold;
  for (int rank = 0; rank < 3; ++rank) {
    RankStack one = stack(rank, kAllreduce);
    one.threads = {{4, {{"worker", "libtorch_cpu.so"}}}};
    if (rank == 2) one.nccl_trace = "/tmp/nccl_trace_rank_2";
    fold.add(one, "n1");
  }
  REQUIRE(fold.threads().size() == 1);
  CHECK(fold.threads()[0]["count"] == 12);
  CHECK(fold.threads()[0]["ranks"] == "0-2");
  CHECK(fold.nccl_traces()[0]["file"] == "/tmp/nccl_trace_rank_2");
}

TEST_CASE("numbers of ranks are ranges, in any order") {
  CHECK(ranks_as_ranges({}).empty());
  CHECK(ranks_as_ranges({5, 1, 2, 0, 9}) == "0-2,5,9");
}

TEST_CASE("of very many places the headline has the first ones") {
  StackFold fold;
  for (int rank = 0; rank < 5; ++rank) fold.add(stack(rank, {{"f" + std::to_string(rank), "train"}}), "n1");
  CHECK(fold.headline().ends_with("; and 2 more places"));
}

}  // namespace dlrun::job
