#include "src/cli/cmd_logs.hpp"

#include "src/cli/run_lines.hpp"
#include "src/cli/world_of.hpp"
#include "src/report/rank_logs.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<LogsCommand> kLogsFlags[] = {
    {{.name = "-f,--follow", .help = "continue with new output, until the run is over"},
     &LogsCommand::follow},
    {{.name = "--rank", .value = "RANKS", .help = "only these ranks: 0-3,7"}, &LogsCommand::ranks},
    {{.name = "--role", .value = "ROLE", .help = "only ranks of this role"}, &LogsCommand::role},
    {{.name = "--host", .value = "HOST", .help = "only ranks on this node"}, &LogsCommand::host},
    {{.name = "--since",
      .value = "TIME",
      .help = "only output since then: 10min for the last ten minutes, or 2026-11-29T20:00:00Z"},
     &LogsCommand::since},
};

constexpr Seconds kFollowStep{0.3}, kFollowMany{1}, kAskStep{2};
constexpr std::size_t kMany = 64;

// One log with its reader, and how its lines are shown.
struct Shown {
  report::RankLog log;
  report::LogReader reader;
};

class LogPrinter {
 public:
  LogPrinter(const std::vector<report::RankLog>& logs, const std::optional<Instant>& since,
             const Context& context)
      : context_(context) {
    std::error_code problem;
    for (const report::RankLog& log : logs) {
      const auto offset = since ? report::offset_since(log, *since) : std::nullopt;
      timeless_ = timeless_ || (since && !offset && std::filesystem::exists(log.file, problem));
      shown_.push_back({log, report::LogReader(log.file, offset.value_or(0))});
    }
    if (timeless_)
      context_.console.say("dlrun: some logs of this run have no times: they are shown from their beginning");
  }

  Result<void> print(report::LogReader::Until until) {
    for (Shown& one : shown_) {
      Result<void> written;
      TRY(one.reader.read(until, [&](std::string_view line) {
        if (written) written = print(one.log, line);
      }));
      TRY(std::move(written));
    }
    return {};
  }

  Seconds step() const { return shown_.size() > kMany ? kFollowMany : kFollowStep; }

 private:
  Result<void> print(const report::RankLog& log, std::string_view line) {
    if (context_.common.json)
      return context_.console.data(to_text(Json{{"schema", "dlrun.log-line/1"},
                                                {"rank", log.rank},
                                                {"role", log.role},
                                                {"task_index", log.task},
                                                {"host", log.host},
                                                {"text", line}}) +
                                   "\n");
    if (shown_.size() == 1)
      context_.console.out(line);
    else
      context_.console.out(fmt::format("[{} {}] {}", log.role, log.task, line));
    return {};
  }

  const Context& context_;
  std::vector<Shown> shown_;
  bool timeless_ = false;
};

Error no_run_yet(const report::RunView& view) {
  return Error{.kind = ErrorKind::usage,
               .what = fmt::format("{} has no run directory yet: {}", view.entry.folder(),
                                   view.standing.reason.empty() ? std::string(word_of(view.standing.state))
                                                                : view.standing.reason),
               .where = {},
               .hint = fmt::format("what its job printed is in {}", view.entry.path.string()),
               .also = {}};
}

class Logs {
 public:
  Logs(const LogsCommand& options, const Context& context)
      : options_(options), context_(context), world_of_(context) {}

  Result<int> run(const report::RunEntry& entry) {
    std::optional<Instant> since;
    if (!options_.since.empty()) since = TRY(report::since_of(options_.since, SystemClock().now()));
    const report::RunView view = TRY(begun(entry));
    const auto logs = TRY(report::logs_of(TRY(report::read_run_folder(view.run)),
                                          {options_.ranks, options_.role, options_.host}));
    LogPrinter printer(logs, since, context_);
    const report::RunState state = options_.follow ? TRY(follow(entry, view, printer)) : view.standing.state;
    TRY(printer.print(report::LogReader::Until::end));
    if (is_over(state) || waits_again(view))
      TRY(check_all_there(TRY(report::read_run_folder(view.run)), logs));
    return 0;
  }

 private:
  // Of a job that waits, with --follow, as soon as it has begun.
  Result<report::RunView> begun(const report::RunEntry& entry) {
    for (bool said = false;; said = true) {
      report::RunView view = report::view_of(report::resolved(entry), world_of_.world());
      if (!view.run.empty()) return view;
      if (!options_.follow || is_over(view.standing.state)) return fail(no_run_yet(view));
      if (!said) context_.console.say("dlrun: " + status_line(view, SystemClock().now()));
      world_of_.world().pause(kAskStep);
    }
  }

  // A log that is not there is not an empty one.
  Result<void> check_all_there(const report::RunFolder& run, const std::vector<report::RankLog>& logs) {
    const report::MissingLogs missing = report::missing_logs(run, logs);
    if (!missing.never_started.empty())
      context_.console.say(fmt::format("dlrun: {} of {} rank(s), rank {} first, were never started: no logs",
                                       missing.never_started.size(), logs.size(),
                                       missing.never_started.front()));
    if (missing.gone.empty()) return {};
    return fail(ErrorKind::input, "{} of {} log(s) are missing, {} first", missing.gone.size(), logs.size(),
                missing.gone.front().file.string());
  }

  // The last state that was seen of it.
  Result<report::RunState> follow(const report::RunEntry& entry, report::RunView view, LogPrinter& printer) {
    Ticks asked_at = SystemClock().ticks();
    while (!is_over(view.standing.state) && !waits_again(view)) {
      TRY(printer.print(report::LogReader::Until::whole_lines));
      if (context_.console.out_is_gone()) return view.standing.state;
      world_of_.world().pause(printer.step());
      if (SystemClock().ticks() - asked_at < kAskStep) continue;
      const std::filesystem::path run = view.run;
      view = report::view_of(report::resolved(entry), world_of_.world());
      asked_at = SystemClock().ticks();
      if (view.run != run) return report::RunState::done;  // the chain is at its next link
    }
    if (!view.standing.reason.empty())
      context_.console.say(fmt::format("dlrun: {}: {}", word_of(view.standing.state), view.standing.reason));
    return view.standing.state;
  }

  const LogsCommand& options_;
  const Context& context_;
  WorldOf world_of_;
};

}  // namespace

const char* const LogsCommand::kExamples = R"(Examples:
  dlrun logs                         what the ranks of the newest run printed
  dlrun logs -f small --rank 0       rank 0 of the newest run of job small, until it is over
  dlrun logs small --since 10min     what they printed in the last ten minutes
  dlrun logs small --role ps         the parameter servers alone
  dlrun logs small --host gpu07      the ranks of one node)";

void LogsCommand::add(Arguments& arguments) {
  arguments.argument("RUN", asked,
                     "a path, a folder below runs/, a job's name or its id (default: the newest run)");
  arguments.flags<LogsCommand>(kLogsFlags, *this);
}

Result<int> LogsCommand::run(const Context& context) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), asked));
  return Logs(*this, context).run(entry);
}

}  // namespace dlrun::cli
