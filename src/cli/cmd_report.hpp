// dlrun report: runs and chains as one HTML page, which needs no network to be read.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct ReportCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string output;  // empty: NAME.html in this folder
  std::vector<std::string> runs;
};

}  // namespace dlrun::cli
