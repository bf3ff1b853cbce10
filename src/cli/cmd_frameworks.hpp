// dlrun frameworks: the adapters that are known, what one of them sets, and whether a user's own has
// mistakes.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct FrameworksCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string name;  // of an adapter, or "check"
  std::string file;  // of an adapter to check
  std::string framework_dir;
};

}  // namespace dlrun::cli
