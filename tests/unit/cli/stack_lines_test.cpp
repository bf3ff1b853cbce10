// The document of stacks as people see it.
#include "src/cli/stack_lines.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::cli;

TEST_CASE("groups, threads, what was not read and NCCL's files") {
  const Json frames = Json::array({{{"function", "read_batch"}, {"place", "train.py:3"}}});
  const Json document{
      {"reason", "hang"},
      {"written", "2026-11-30T00:00:00Z"},
      {"ranks", 3},
      {"text", "3 ranks (0-2) in read_batch"},
      {"groups", Json::array({{{"where", "in read_batch"},
                               {"count", 3},
                               {"ranks", "0-2"},
                               {"first",
                                {{"rank", 0},
                                 {"host", "n1"},
                                 {"pid", 42},
                                 {"program", "python3"},
                                 {"state", "S"},
                                 {"waits", "futex_wait"}}},
                               {"python", frames},
                               {"native", Json::array()}}})},
      {"threads", Json::array({{{"count", 4}, {"ranks", "1"}, {"frames", frames}}})},
      {"problems", Json::array({{{"ranks", "2"}, {"count", 1}, {"problem", "ptrace is not allowed"}}})},
      {"silent_hosts", Json::array({"n9"})},
      {"nccl_traces", Json::array({{{"rank", 2}, {"file", "/tmp/nccl_trace_rank_2"}}})}};
  CHECK(stack_lines(document, ShownThreads::first) ==
        std::vector<std::string>{
            "stacks     of 3 ranks, read before the hung run was ended at 2026-11-30T00:00:00Z",
            "           3 ranks (0-2) in read_batch", "", "3 ranks (0-2) in read_batch",
            "  rank 0 on n1: process 42 (python3), state S, in the kernel in futex_wait",
            "  Python:", "    #0  read_batch  (train.py:3)", "not read   rank 2: ptrace is not allowed",
            "no answer  from n9", "NCCL       rank 2 has left /tmp/nccl_trace_rank_2"});
  CHECK(stack_lines(document, ShownThreads::all).at(7) == "4 other threads of ranks 1");
}

TEST_CASE("a document that lacks its parts is shown without them") {
  CHECK(stack_lines(Json::object(), ShownThreads::all).size() == 1);
  CHECK(stack_lines({{"groups", 7}, {"threads", "no"}}, ShownThreads::all).size() == 1);
}
