// What `dlrun bench-report` shows of a bench.json, and `dlrun bench` of its own: flags, and one function that
// writes the table, the page, the comparison or the prediction where they are wanted.
#pragma once

#include <span>

#include "src/bench/results/bench.hpp"
#include "src/bench/results/table.hpp"
#include "src/cli/command.hpp"

namespace dlrun::cli {

struct BenchReportOptions {
  std::string format;   // empty: by the name of the output, else text
  std::string output;   // empty: standard output; of a page, NAME.html
  std::string columns;  // an axis whose values are columns
  std::string compare;  // an older bench
  std::string margin;   // percent; empty: the usual one
  std::string predict;  // numbers of nodes
  std::string network;  // a name; empty: a fit of what was measured
  std::string servers;  // numbers of parameter servers; empty: the best
  std::string bytes;    // of gradients; empty: as measured
};

std::span<const FlagRow<BenchReportOptions>> bench_report_flags();

bool is_any_set(const BenchReportOptions& options);
/// An Error where a flag is given without the one that it belongs to.
Result<void> check_together(const BenchReportOptions& options, std::string_view command);

/// The exit code.
Result<int> show_bench(const BenchReportOptions& options, const bench::results::Bench& bench,
                       const Context& context);

}  // namespace dlrun::cli
