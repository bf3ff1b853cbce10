// dlrun plan: what would run where. Starts nothing; writes only the scripts that are asked for.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

struct PlanCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  JobOptions job;
  std::string scripts;
  bool explain = false;
};

}  // namespace dlrun::cli
