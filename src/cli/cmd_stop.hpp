// dlrun stop: ends a run, a submitted job or a chain, or takes nodes out of an elastic run, from any machine
// that sees its folder. What runs saves
// and ends; what waits is cancelled; what is over, or has lost its head, is said to be so.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct StopCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string asked;
  bool now = false;
  std::string hosts;
};

}  // namespace dlrun::cli
