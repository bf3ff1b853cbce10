// dlrun chain status and stop: where one training over many jobs stands, and how it is ended.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct ChainCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string action;
  std::string folder;  // empty: the newest chain
  bool now = false;
};

}  // namespace dlrun::cli
