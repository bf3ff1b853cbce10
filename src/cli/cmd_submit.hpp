// dlrun submit: submits the job to the scheduler. The job's id alone goes to stdout, so that a script can use
// it.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

struct SubmitCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  /// Unset where it is no chain, or as many links as it takes.
  std::optional<int> chain_links() const;
  /// 0 where not given.
  std::int64_t epoch_count() const;

  JobOptions job;
  bool dry_run = false, sweep = false;
  std::vector<std::string> axes;              // of a sweep: KEY=V1,V2
  std::string chain;                          // the maximum number of links, or "auto"; empty: no chain
  std::string epochs, mtbf, measured, probe;  // with auto: see the planner of chains
};

}  // namespace dlrun::cli
