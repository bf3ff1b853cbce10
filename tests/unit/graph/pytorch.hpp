// PyTorch as the judge of figures: one process of pytorch_oracle.py, started by the first question (its start
// takes seconds), answers all of them. It holds no state between questions.
#pragma once

#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/unique_fd.hpp"
#include "src/process/child.hpp"

namespace dlrun::runtime::test {

class PyTorch {
 public:
  // Whether what lies in `folder` is PyTorch's; what is not is told on stderr. An Error where it cannot say.
  static Result<bool> agrees(const std::string& folder, double tolerance) {
    static PyTorch one;
    if (one.asks_ == nullptr) TRY(one.start());
    std::fprintf(one.asks_, "%s\t%g\n", folder.c_str(), tolerance);
    char answer[16] = {};
    if (std::fflush(one.asks_) != 0 || std::fgets(answer, sizeof answer, one.answers_) == nullptr)
      return fail(ErrorKind::unavailable, "pytorch_oracle.py ended: python3 with torch and numpy is needed");
    return std::string(answer) == "right\n";
  }

 private:
  ~PyTorch() {
    // Its input ends, and so does it.
    if (asks_ != nullptr) std::fclose(asks_);
    if (answers_ != nullptr) std::fclose(answers_);
  }

  Result<void> start() {
    int questions[2], answers[2];
    if (::pipe2(questions, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0)
      return fail(ErrorKind::unavailable, "no pipe");
    const UniqueFd reads(questions[0]), writes(answers[1]);
    asks_ = ::fdopen(questions[1], "w");
    answers_ = ::fdopen(answers[0], "r");
    TRY(start_child({.argv = {"/usr/bin/python3", TEST_DATA_DIR "/pytorch_oracle.py"},
                     .environment = Environment::of_this_process(),
                     .working_directory = "",
                     .stdin_fd = reads.get(),
                     .stdout_fd = writes.get(),
                     .stderr_fd = 2,
                     .inherited_fds = {}}));
    return {};
  }

  std::FILE *asks_ = nullptr, *answers_ = nullptr;
};

}  // namespace dlrun::runtime::test
