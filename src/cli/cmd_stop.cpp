#include "src/cli/cmd_stop.hpp"

#include "src/base/json.hpp"
#include "src/cli/ask_hosts.hpp"
#include "src/cli/cmd_chain.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/record/stop_request.hpp"
#include "src/report/head_life.hpp"
#include "src/report/run_view.hpp"
#include "src/report/scheduler_job.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<StopCommand> kStopFlags[] = {
    {{.name = "--now", .help = "end it at once, without a checkpoint"}, &StopCommand::now},
    {{.name = "--hosts",
      .value = "LIST",
      .help = "end only the ranks of these hosts; an elastic run continues with the others"},
     &StopCommand::hosts},
};

using report::FolderKind;
using report::RunState;
using report::RunView;

// A link that ends well is followed by the next one: that is not what stop means.
Result<void> refuse_link(const RunView& view) {
  const std::filesystem::path above = view.entry.path.parent_path();
  if (view.entry.kind != FolderKind::run || report::kind_of(above) != FolderKind::chain) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("{} is a link of a chain, which would go on", view.entry.folder()),
                    .where = {},
                    .hint = "dlrun stop " + above.string(),
                    .also = {}});
}

// `did`: cancelled, asked or over.
Result<int> tell(const RunView& view, const std::string& did, const std::string& text,
                 const Context& context) {
  if (context.common.json)
    TRY(context.console.data(to_pretty_text({{"schema", "dlrun.stop/1"},
                                             {"run", view.entry.folder()},
                                             {"directory", view.entry.path.string()},
                                             {"state", word_of(view.standing.state)},
                                             {"stop", did},
                                             {"text", text}})));
  context.console.say("dlrun: " + plain_text(text));
  return 0;
}

Result<int> cancel(const RunView& view, const Context& context) {
  const WorldOf world_of(context);
  const std::string job = fmt::format("job {} of {}", view.scheduler_job.value_or("?"), view.scheduler);
  const bool known = view.scheduler_job.has_value();
  const auto cancelled =
      known ? report::cancel_scheduler_job(view.scheduler, *view.scheduler_job, world_of.world())
            : report::Cancelled::no;
  // It tells how the job ended, which not every scheduler remembers; the job is cancelled without it, too.
  if (cancelled == report::Cancelled::yes && view.entry.kind == FolderKind::submission)
    (void)job::request_stop(view.entry.path, job::RunStop::now);
  if (cancelled == report::Cancelled::yes) return tell(view, "cancelled", job + " is cancelled", context);
  return fail(ErrorKind::unavailable, "{} could not be cancelled", job);
}

Result<int> ask_head(const RunView& view, job::RunStop asked, const Context& context) {
  const WorldOf world_of(context);
  TRY(report::check_head_works_in({view.run, *view.head}, view.planned, world_of.world().pause));
  TRY(job::request_stop(view.run, asked));
  const std::string who = fmt::format("{} (process {} on {})", view.entry.folder(), view.head->process.pid,
                                      view.head->process.host);
  return asked == job::RunStop::now ? tell(view, "asked", who + " is asked to end at once", context)
                                    : tell(view, "asked", who + " is asked to save and end", context);
}

Result<int> stop_one(const RunView& view, job::RunStop asked, const Context& context) {
  if (waits_again(view)) return cancel(view, context);
  if (view.standing.state == RunState::lost)
    return fail(ErrorKind::lost, "{}: {}", view.entry.folder(), view.standing.reason);
  if (is_over(view.standing.state))
    return tell(view, "over",
                fmt::format("{} is over: {}", view.entry.folder(), word_of(view.standing.state)), context);
  // A job that has begun and has no head yet can only be cancelled.
  if (view.run.empty() || !view.head) return cancel(view, context);
  return ask_head(view, asked, context);
}

}  // namespace

const char* const StopCommand::kExamples = R"(Examples:
  dlrun stop small-20261129-193333-ed15     ask the run to save and end
  dlrun stop 4711                           the run of the scheduler's job 4711; one that waits is cancelled
  dlrun stop small --now                    do not wait for a checkpoint
  dlrun stop small --hosts c3               take node c3 out of an elastic run, which continues)";

void StopCommand::add(Arguments& arguments) {
  arguments.argument("RUN", asked, "a path, a folder below runs/, a job's name or its id");
  arguments.flags<StopCommand>(kStopFlags, *this);
}

Result<void> StopCommand::finish(const ExtraArguments&) {
  if (now && !hosts.empty())
    return fail(usage_error("stop", "--now and --hosts exclude each other",
                            "with --hosts, nodes leave between two steps, and the run continues"));
  if (!asked.empty()) return {};
  return fail(usage_error("stop", "the run is missing", "dlrun stop RUN; dlrun list shows the runs"));
}

Result<int> StopCommand::run(const Context& context) {
  std::error_code problem;
  const report::RunEntry entry = TRY(report::find_run(std::filesystem::current_path(problem), asked));
  if (!hosts.empty()) {
    const WorldOf world_of(context);
    return ask_hosts(report::view_of(report::resolved(entry), world_of.world()), job::HostsChange::leave,
                     TRY(hosts_of_flag("--hosts", hosts)), context);
  }
  if (entry.kind == FolderKind::chain)
    return stop_chain(job::ChainFolder(entry.path), now ? StopTime::now : StopTime::when_saved, context);
  const WorldOf world_of(context);
  const RunView view = report::view_of(report::resolved(entry), world_of.world());
  TRY(refuse_link(view));
  return stop_one(view, now ? job::RunStop::now : job::RunStop::save, context);
}

}  // namespace dlrun::cli
