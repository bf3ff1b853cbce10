// dlrun diff: what differs between two runs, the most telling first.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct DiffCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string a, b;
  std::string margin = "10";  // percent
};

}  // namespace dlrun::cli
