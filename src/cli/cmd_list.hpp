// dlrun list: the runs, submissions and chains below runs/, the newest first, each with how it stands.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct ListCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string folder;  // that has runs/; empty: the current one
  std::string newest;  // how many; empty: all
};

}  // namespace dlrun::cli
