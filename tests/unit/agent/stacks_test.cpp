// What py-spy and faulthandler write, threads that are alike, the program among a rank's processes, and a
// stack on its way to the head.
#include <doctest/doctest.h>

#include "src/agent/stacks/native_stacks.hpp"
#include "src/agent/stacks/python_stacks.hpp"
#include "src/agent/stacks/read_stacks.hpp"

namespace dlrun::agent {

TEST_CASE("the first thread's frames in the answer of py-spy") {
  const std::string answer =
      R"([{"pid":42,"thread_id":140,"thread_name":"pin","os_thread_id":43,"active":false,"owns_gil":false,)"
      R"("frames":[{"name":"wait","filename":"/usr/lib/python3.11/threading.py","line":320}]},)"
      R"({"pid":42,"thread_id":139,"thread_name":"MainThread","os_thread_id":42,"active":true,"owns_gil":true,)"
      R"("frames":[{"name":"read_batch","filename":"train.py","line":3},{"name":"<module>",)"
      R"("filename":"train.py","line":9}]}])";
  const auto frames = frames_of_py_spy(answer, 42);
  REQUIRE(frames);
  CHECK(*frames == StackFrames{{"read_batch", "train.py:3"}, {"<module>", "train.py:9"}});
  CHECK_FALSE(frames_of_py_spy(answer, 44));
  CHECK_FALSE(frames_of_py_spy("Error: Permission denied", 42));
  CHECK_FALSE(frames_of_py_spy(R"([{"os_thread_id":42}])", 42));
}

TEST_CASE("before Python 3.11 py-spy does not number threads: the first one has its name, or is the last") {
  const std::string other =
      R"({"pid":42,"thread_id":140,"thread_name":%,"os_thread_id":null,"frames":[{"name":"wait","filename":"t.py","line":3}]})";
  const std::string first =
      R"({"pid":42,"thread_id":139,"thread_name":%,"os_thread_id":null,"frames":[{"name":"step","filename":"t.py","line":9}]})";
  const auto with = [](std::string thread, const char* name) {
    return thread.replace(thread.find('%'), 1, name);
  };
  const StackFrames expected{{"step", "t.py:9"}};
  CHECK(*frames_of_py_spy("[" + with(other, "null") + "," + with(first, "null") + "]", 42) == expected);
  CHECK(*frames_of_py_spy("[" + with(first, "\"MainThread\"") + "," + with(other, "\"pin\"") + "]", 42) ==
        expected);
  CHECK_FALSE(frames_of_py_spy("[]", 42));
}

TEST_CASE("the current thread's frames in the text of faulthandler") {
  const char* text =
      "Thread 0x00007f01 (most recent call first):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
      "\n"
      "Current thread 0x00007f02 (most recent call first):\n"
      "  File \"/a b/train.py\", line 3 in read_batch\n"
      "  File \"/a b/train.py\", line 9 in <module>\n"
      "\n"
      "Thread 0x00007f03 (most recent call first):\n"
      "  File \"other.py\", line 1 in other\n";
  CHECK(frames_of_faulthandler(text) ==
        StackFrames{{"read_batch", "/a b/train.py:3"}, {"<module>", "/a b/train.py:9"}});
  CHECK(frames_of_faulthandler("").empty());
  CHECK(
      frames_of_faulthandler("Current thread 0x1 (most recent call first):\n  <no Python frame>\n").empty());
}

TEST_CASE("threads with the same frames are one, the most frequent first") {
  const StackFrames waits{{"futex", "libc.so.6"}}, reads{{"read", "libc.so.6"}};
  const auto found = merged({reads, waits, waits});
  REQUIRE(found.size() == 2);
  CHECK(found[0].count == 2);
  CHECK(found[0].frames == waits);
}

TEST_CASE("the program of a rank is its first process that is no shell") {
  std::vector<ProcessState> tree(3);
  tree[0].name = "bash", tree[1].name = "python3", tree[2].name = "python3";
  tree[1].pid = 7;
  REQUIRE(program_among(tree) != nullptr);
  CHECK(program_among(tree)->pid == 7);
  tree[2].pid = 8, tree[2].state = 'T';
  CHECK(program_among(tree)->pid == 8);
  tree.resize(1);
  CHECK(program_among(tree)->name == "bash");
  CHECK(program_among({}) == nullptr);
}

TEST_CASE("the file of NCCL's flight recorder is that of the program's variables") {
  CHECK(nccl_trace_path({"RANK=3"}) == "/tmp/nccl_trace_rank_3");
  CHECK(nccl_trace_path({"RANK=3", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/scratch/trace_"}) == "/scratch/trace_3");
  CHECK(nccl_trace_path({"HOME=/root"}).empty());
}

TEST_CASE("a stack comes to the head as it was read") {
  const RankStack stack{.rank = Rank(3),
                        .pid = 42,
                        .program = "train",
                        .state = 'D',
                        .waits = "nfs_wait",
                        .native = {{"main", "train"}},
                        .python = {{"f", "x.py:1"}},
                        .threads = {{2, {{"g", "lib.so"}}}},
                        .problems = {"a"},
                        .nccl_trace = "/tmp/t3"};
  const auto back = rank_stack_from_json(to_json(stack), "test");
  REQUIRE(back);
  CHECK(to_json(*back) == to_json(stack));
  for (const char* name : {"rank", "state", "native", "threads", "problems"}) {
    Json broken = to_json(stack);
    broken[name] = Json::object();
    CHECK_FALSE(rank_stack_from_json(broken, "test"));
  }
}

TEST_CASE("a process that has ended is told as that") {
  const RankStack stack = stack_without_frames(Rank(0), 1 << 29);
  CHECK(stack.problems == std::vector<std::string>{"it has ended"});
}

}  // namespace dlrun::agent
