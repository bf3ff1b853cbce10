#include "src/cli/run_arguments.hpp"

namespace dlrun::cli {

Argv forwarded_flags(const JobOptions& options, const CommonOptions& common) {
  Argv out;
  // With '=': a value may begin with a dash.
  if (!options.run_dir.empty()) out.push_back("--run-dir=" + options.run_dir);
  if (!options.framework_dir.empty()) out.push_back("--framework-dir=" + options.framework_dir);
  if (common.verbosity == Verbosity::verbose) out.emplace_back("--verbose");
  if (common.verbosity == Verbosity::quiet) out.emplace_back("--quiet");
  if (common.color == ColorChoice::always) out.emplace_back("--color=always");
  if (common.color == ColorChoice::never) out.emplace_back("--color=never");
  return out;
}

}  // namespace dlrun::cli
