// dlrun status: how one run, submission or chain stands now, once or watched until it is over.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct StatusCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<int> run(const Context& context) override;

  std::string asked;  // empty: the newest run
  bool watch = false;
};

}  // namespace dlrun::cli
