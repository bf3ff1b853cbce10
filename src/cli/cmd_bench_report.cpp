#include "src/cli/cmd_bench_report.hpp"

#include "src/cli/usage_error.hpp"

namespace dlrun::cli {

const char* const BenchReportCommand::kExamples = R"(Examples:
  dlrun bench-report bench/flowers                     the table, on the terminal
  dlrun bench-report bench/flowers -o scaling.tex      for a paper, with booktabs
  dlrun bench-report bench/flowers -o scaling.html     a page with plots
  dlrun bench-report bench/flowers --columns batch     the values of batch as columns
  dlrun bench-report bench/new --compare bench/old     what changed beyond noise
  dlrun bench-report bench/flowers --predict 64,512    on more nodes, from a fit of the cells)";

void BenchReportCommand::add(Arguments& arguments) {
  arguments.argument("BENCH", bench, "the folder of a bench, or its bench.json");
  arguments.flags<BenchReportOptions>(bench_report_flags(), options);
}

Result<void> BenchReportCommand::finish(const ExtraArguments&) {
  if (!bench.empty()) return check_together(options, "bench-report");
  return fail(
      usage_error("bench-report", "a bench is needed", "dlrun bench-report DIR, where DIR has bench.json"));
}

Result<int> BenchReportCommand::run(const Context& context) {
  return show_bench(options, TRY(bench::results::read_bench(bench)), context);
}

}  // namespace dlrun::cli
