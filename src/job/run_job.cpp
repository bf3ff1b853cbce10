#include "src/job/run_job.hpp"

#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/job/event_log.hpp"
#include "src/job/head.hpp"
#include "src/job/record.hpp"
#include "src/job/run_directory.hpp"
#include "src/launch/launcher.hpp"
#include "src/process/command.hpp"

namespace dlrun::job {
namespace {

// A program's own message without its name and the word that we put before it again.
std::string without_prefix(std::string_view text) {
  if (const std::size_t at = text.find("error: "); at != std::string_view::npos && at < 40)
    text.remove_prefix(at + 7);
  return std::string(text);
}

ErrorKind kind_of_exit(int code) {
  for (const ErrorKind kind :
       {ErrorKind::usage, ErrorKind::input, ErrorKind::allocation, ErrorKind::unavailable, ErrorKind::io})
    if (to_int(exit_code(kind)) == code) return kind;
  return ErrorKind::input;
}

// The adapter's checks, before any rank: their own message is the error.
Result<void> run_checks(const plan::Plan& plan, const Environment& environment) {
  for (const Argv& argv : plan.checks) {
    const auto output = TRY(
        run_command({.argv = argv, .environment = environment, .working_directory = plan.working_directory}));
    if (output.status.success()) continue;
    const std::string said(trim(output.err.empty() ? output.out : output.err));
    return fail(Error{.kind = kind_of_exit(output.status.code()),
                      .what = said.empty() ? fmt::format("{}: {}", shell_join(argv), output.status.text())
                                           : without_prefix(said)});
  }
  return {};
}

}  // namespace

Result<RunReport> run_job(const Request& request, const Clock& clock, RunStatus& status) {
  const Instant began = clock.now();
  const Prepared job = TRY(prepare(request, began));
  TRY(write_run_directory(job, request.installation.data));
  status.planned(job.plan);
  TRY(run_checks(job.plan, request.environment));
  EventLog events = TRY(EventLog::open(job.plan.run_directory + "/events.jsonl", clock));
  events.add({{"event", "planned"}, {"ranks", job.plan.world_size()}, {"nodes", job.plan.nodes.size()}});
  const auto launcher = launch::make_local_launcher(request.environment);
  const Outcome outcome = TRY(run_attempt(job.plan, {*launcher, events, status}));
  events.add({{"event", "ended"}, {"exit_code", outcome.exit_code}, {"reason", reason_of(outcome)}});
  Json record = make_record(job, outcome, {began, clock.now()}, provenance(job, request.environment));
  TRY(replace_file(job.plan.run_directory + "/record.json", to_pretty_text(record), Durability::synced));
  TRY(Result<void>(events.state()));
  status.finished(job.plan, outcome);
  return RunReport{outcome, std::move(record)};
}

}  // namespace dlrun::job
