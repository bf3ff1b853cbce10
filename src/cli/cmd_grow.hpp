// dlrun grow: lets nodes join an elastic run while it trains, from any machine that sees its folder.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct GrowCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string asked;
  std::string hosts;
};

}  // namespace dlrun::cli
