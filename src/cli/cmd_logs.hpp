// dlrun logs: what the ranks of a run printed, all or those that were chosen, and what they go on to print.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct LogsCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<int> run(const Context& context) override;

  std::string asked;  // empty: the newest run
  bool follow = false;
  std::string ranks, role, host, since;
};

}  // namespace dlrun::cli
