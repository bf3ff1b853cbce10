// dlrun run: the job, from flags to its exit code.
#include <limits>

#include "src/base/exit_code.hpp"
#include "src/base/units.hpp"
#include "src/chain/link.hpp"
#include "src/chain/stop_watch.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/run_printer.hpp"
#include "src/plan/load_job.hpp"
#include "src/process/stop_signals.hpp"
#include "src/run/run_job.hpp"
#include "src/run/single_start.hpp"

namespace dlrun::cli {

namespace {

// The run as a link of a chain: before and after it, the chain's ledger.
Result<job::RunReport> run_link(job::Request request, const std::string& folder, const Clock& clock,
                                RunPrinter& printer) {
  const plan::JobSpec spec = TRY(plan::load_job(request.sources, request.here));
  const SystemCommands commands;
  job::ChainLink link = TRY(job::ChainLink::begin(
      folder, {spec.checkpoint.dir, spec.checkpoint.files},
      {request.environment, commands, clock, [&](const std::string& text) { printer.note(text); }}));
  if (!link.has_work()) {
    printer.note("nothing to do, the chain is over: " + link.idle_reason());
    return job::RunReport{};
  }
  request.run_directory = link.run_directory();
  hold_stop_signals();  // the watcher's too: a link that is stopped writes its end down
  auto report = [&] {
    const job::StopWatcher watcher{job::ChainFolder(folder)};
    return job::run_job(request, clock, printer);
  }();
  if (const auto written = link.end(report); !written) printer.note(written.error().text());
  return report;
}

Result<std::optional<Rank>> input_rank_of(const std::string& text) {
  if (text == "none") return std::nullopt;
  const auto rank = parse_integer(text, 0, std::numeric_limits<int>::max());
  if (rank) return Rank(static_cast<int>(*rank));
  return fail({.kind = ErrorKind::usage,
               .what = "--stdin: '" + text + "' is no rank",
               .hint = "write --stdin 0, or none"});
}

}  // namespace

Result<int> run(const RunOptions& options, const Context& context) {
  TRY(job::check_single_start(context.environment));
  job::Request request = TRY(request_of(options.job, context.environment));
  request.input_rank = TRY(input_rank_of(options.input_rank));
  if (context.common.json) context.console.send_out_to_err();
  const SystemClock clock;
  RunPrinter::Choice choice{.fold = !options.no_fold};
  if (!options.tee.empty()) choice.tee = TRY(RankChoice::parse(options.tee));
  RunPrinter printer(context.console, clock, std::move(choice));
  const job::RunReport report =
      TRY(options.link_of.empty() ? job::run_job(request, clock, printer)
                                  : run_link(request, options.link_of, clock, printer));
  if (context.common.json) TRY(context.console.data(to_pretty_text(report.record)));
  // The printer has said what was lost, and where it is.
  const bool is_all = report.outcome.exit_code != 0 || context.console.lost_out().empty();
  return is_all ? report.outcome.exit_code : to_int(ExitCode::io);
}

}  // namespace dlrun::cli
