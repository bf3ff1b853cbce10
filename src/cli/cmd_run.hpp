// dlrun run: the job, from its flags to its exit code.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

struct RunCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  std::optional<Error> mistyped() const override;
  Result<int> run(const Context& context) override;

  JobOptions job;
  std::string tee;
  bool no_fold = false;
  std::string input_rank = "none";
  std::string link_of;  // folder of the chain that this run is a link of
};

}  // namespace dlrun::cli
