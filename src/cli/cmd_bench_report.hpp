// dlrun bench-report: the results of `dlrun bench` as tables, for people and for papers.
#pragma once

#include "src/cli/bench_report.hpp"

namespace dlrun::cli {

struct BenchReportCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  BenchReportOptions options;
  std::string bench;  // a folder with bench.json, or the file
};

}  // namespace dlrun::cli
