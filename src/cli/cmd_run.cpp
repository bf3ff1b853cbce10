#include "src/cli/cmd_run.hpp"

#include <filesystem>
#include <limits>

#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/chain/link.hpp"
#include "src/chain/stop_watch.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/request.hpp"
#include "src/cli/run_printer.hpp"
#include "src/cli/usage_error.hpp"
#include "src/plan/load_job.hpp"
#include "src/process/stop_signals.hpp"
#include "src/run/run_job.hpp"
#include "src/run/single_start.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<RunCommand> kRunFlags[] = {
    {{.name = "--tee", .value = "RANKS", .help = "show only the lines of these ranks: 0-3,7 or worker:0,ps"},
     &RunCommand::tee},
    {{.name = "--stdin",
      .value = "RANK|none",
      .help = "the rank that reads the standard input (default: none)",
      .choices = "0 none"},
     &RunCommand::input_rank},
    {{.name = "--no-fold", .help = "show equal lines of several ranks one by one"}, &RunCommand::no_fold},
    {{.name = "--link-of", .value = "DIR", .help = "run as a link of this chain; submit --chain uses it"},
     &RunCommand::link_of},
};
constexpr FlagRow<JobOptions> kSpecFlag[] = {
    {{.name = "--spec", .value = "FILE", .help = "run the job of a submission; submit writes the file"},
     &JobOptions::frozen_job},
};

// The run as a link of a chain: before and after it, the chain's ledger.
Result<job::RunReport> run_link(job::Request request, const std::string& folder, const Clock& clock,
                                RunPrinter& printer) {
  request.spec = TRY(job_spec_of(request));
  const SystemCommands commands;
  job::ChainLink link =
      TRY(job::ChainLink::begin(folder, {request.spec->checkpoint.dir, request.spec->checkpoint.files},
                                {request.environment, commands, clock, *request.spec,
                                 [&](const std::string& text) { printer.note(text); }}));
  if (!link.has_work()) {
    printer.note("nothing to do: the chain has ended: " + link.idle_reason());
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
               .what = "--stdin: '" + text + "' is not a rank",
               .hint = "write --stdin 0, or none"});
}

}  // namespace

const char* const RunCommand::kExamples = R"(Examples:
  dlrun train.yaml                                  run the job in the allocation it stands in, or on this machine
  dlrun --nodes 2 --gpus-per-node 8 train.yaml      the same with other resources than the file says
  dlrun --set train.epochs=1 train.yaml             change any key of the job file
  dlrun train.yaml -- --batch-size 32               add arguments to the job's command
  dlrun --framework mpi --tasks-per-node 4 -- ./a.out    four MPI ranks, without a job file)";

void RunCommand::add(Arguments& arguments) {
  add_job(arguments, job);
  arguments.flags<JobOptions>(kSpecFlag, job);
  arguments.flags<RunCommand>(kRunFlags, *this);
}

Result<void> RunCommand::finish(const ExtraArguments& extra) {
  job.program = extra.of_program;
  return {};
}

// A word that looks like a command and is no file.
std::optional<Error> RunCommand::mistyped() const {
  const std::string& word = job.job_file;
  std::error_code problem;
  if (word.empty() || word[0] == '-' || word.find_first_of("./") != std::string::npos ||
      std::filesystem::exists(word, problem))
    return std::nullopt;
  if (find_command(word) != nullptr)
    return usage_error("", fmt::format("'{}' is a command, and not the first word", word),
                       fmt::format("write dlrun {} first, then its flags", word));
  const std::string near = nearest(word, command_names());
  return usage_error("", fmt::format("'{}' is neither a command nor a job file", word),
                     near.empty() ? fmt::format("to run a program, put it after --: dlrun -- {}", word)
                                  : fmt::format("did you mean '{}'?", near));
}

Result<int> RunCommand::run(const Context& context) {
  TRY(job::check_single_start(context.environment));
  job::Request request = TRY(request_of(job, context.environment));
  request.input_rank = TRY(input_rank_of(input_rank));
  context.console.accept_closed_out();  // the ranks' logs have it
  if (context.common.json) context.console.send_out_to_err();
  const SystemClock clock;
  RunPrinter::Choice choice{.fold = !no_fold};
  if (!tee.empty()) choice.tee = TRY(RankChoice::parse(tee));
  RunPrinter printer(context.console, clock, std::move(choice));
  const job::RunReport report = TRY(link_of.empty() ? job::run_job(request, clock, printer)
                                                    : run_link(request, link_of, clock, printer));
  if (context.common.json) TRY(context.console.data(to_pretty_text(report.record)));
  // The printer has said what was lost, and where it is.
  const bool is_all = report.outcome.exit_code != 0 || context.console.lost_out().empty();
  return is_all ? report.outcome.exit_code : to_int(ExitCode::io);
}

}  // namespace dlrun::cli
