#include "src/run/failure_cause.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

std::string cause_of(std::string_view text) {
  FailureCause cause;
  for (const std::string& line : split(text, '\n')) cause.take(line);
  return cause.text();
}

}  // namespace

TEST_CASE("the cause of a failure is found in what the program printed last") {
  struct {
    const char *text, *cause;
  } const table[] = {
      {"", ""},
      {"FATAL: cannot open input.dat\nAbort(3) on node 0 (rank 0 in comm 0): application called "
       "MPI_Abort(MPI_COMM_WORLD, 3) - process 0",
       "FATAL: cannot open input.dat"},
      {"Traceback (most recent call last):\n  File \"t.py\", line 3\nRuntimeError: nan in loss\n"
       "Traceback (most recent call last):\n  File \"run.py\", line 9\n"
       "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
       "RuntimeError: nan in loss"},
      {"epoch 1\nepoch 2", ""},
      {"Traceback (most recent call last):\n  File \"train.py\", line 68, in <module>\n    main()\n"
       "ValueError: label 11 is out of range in sample 4242",
       "ValueError: label 11 is out of range in sample 4242"},
      {"Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\n\nDuring handling of the "
       "above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", "
       "line 3\n"
       "my.package.ConfigError: no key 'x'\nterminating",
       "my.package.ConfigError: no key 'x'"},
      {"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 1\n[rank3]: "
       "RuntimeError: CUDA error: "
       "out of memory\n[rank3]: Compile with TORCH_USE_CUDA_DSA",
       "RuntimeError: CUDA error: out of memory"},
      {"Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyboardInterrupt", "KeyboardInterrupt"},
      {"terminate called after throwing an instance of 'std::runtime_error'\n  what():  no GPU 7\n",
       "std::runtime_error: no GPU 7"},
      {"terminate called after throwing an instance of 'int'\n", "int"},
      {"warming up\n./solver: error: mesh.h5: No such file or directory\nbye",
       "./solver: error: mesh.h5: No such file or directory"},
      {"sh: 1: solve: command not found", "sh: 1: solve: command not found"},
      {"Error: first\nerror: second", "error: second"},
      {"solver.c:12: main: Assertion `n > 0' failed.", "solver.c:12: main: Assertion `n > 0' failed."},
      {"validation error 0.12 after epoch 3", ""},
  };
  for (const auto& row : table) {
    CAPTURE(row.text);
    CHECK(cause_of(row.text) == row.cause);
  }
  CHECK(cause_of("error: " + std::string(1000, 'x')).size() == 303);
}

TEST_CASE("PyTorch's error file tells the exception") {
  CHECK(cause_in_error_file(
            {{"message", {{"message", "ValueError: bad"}, {"extraInfo", {{"timestamp", "1"}}}}}}) ==
        "ValueError: bad");
  CHECK(cause_in_error_file({{"message", "SignalException: 9"}}) == "SignalException: 9");
  CHECK(cause_in_error_file({{"message", 3}}).empty());
  CHECK(cause_in_error_file({{"message", {{"other", 1}}}}).empty());
  CHECK(cause_in_error_file(nullptr).empty());
}

TEST_CASE("some ends have a next step") {
  CHECK(cause_hint("killed by SIGKILL (9)", "", "").find("dmesg") != std::string::npos);
  CHECK(cause_hint("exit code 1", "ModuleNotFoundError: No module named 'torch'", "/usr/bin/python3.11")
            .starts_with("the program is /usr/bin/python3.11; "));
  for (const char* shell : {"/usr/bin/env", "/bin/bash", ""})
    CHECK(cause_hint("exit code 1", "ModuleNotFoundError: No module named 'torch'", shell)
              .starts_with("is the environment that has the module set up"));
  CHECK(cause_hint("exit code 1", "ValueError: x", "").empty());
}
