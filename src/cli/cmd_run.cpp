// dlrun run: the job, from flags to its exit code.
#include "src/cli/commands.hpp"
#include "src/cli/run_printer.hpp"
#include "src/job/run_job.hpp"

namespace dlrun::cli {

Result<int> run(const RunOptions& options, const Context& context) {
  const job::Request request = TRY(request_of(options.job, context.environment));
  if (context.common.json) context.console.send_out_to_err();
  const SystemClock clock;
  RunPrinter::Choice choice{.fold = !options.no_fold};
  if (!options.tee.empty()) choice.tee = TRY(RankChoice::parse(options.tee));
  RunPrinter printer(context.console, clock, std::move(choice));
  const job::RunReport report = TRY(job::run_job(request, clock, printer));
  if (context.common.json) TRY(context.console.data(to_pretty_text(report.record)));
  return report.outcome.exit_code;
}

}  // namespace dlrun::cli
