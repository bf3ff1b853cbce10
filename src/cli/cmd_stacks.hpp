// dlrun stacks: where each rank of a live run is, in functions, natively and in Python, folded over ranks. It
// asks the head by a file in the run directory and waits for its answer there, so it works from any machine
// that sees the directory. Of a run that is over it shows what was read before, as at a hang.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct StacksCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string asked;
  bool threads = false;
};

}  // namespace dlrun::cli
