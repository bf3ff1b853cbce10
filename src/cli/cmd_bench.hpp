// dlrun bench: a job measured at many points, inside the allocation that it stands in.
#pragma once

#include "src/cli/bench_report.hpp"
#include "src/cli/command.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

struct BenchCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  JobOptions job;
  BenchReportOptions report;      // what is shown at the end
  std::vector<std::string> axes;  // KEY=V1,V2
  std::string resume, collect;    // folders of benchmarks
  bool watch = false;             // with collect: to the end
  std::string tune;               // the axis of which the best value is wanted
};

}  // namespace dlrun::cli
