// dlrun chain status and stop: where one training over many jobs stands, and how it is ended.
#include <numeric>

#include "src/base/units.hpp"
#include "src/cli/commands.hpp"
#include "src/job/chain_folder.hpp"

namespace dlrun::cli {
namespace {

using job::Chain;
using job::ChainFolder;
using job::ChainState;

Seconds seconds_of(const Chain& chain) {
  return Seconds(std::accumulate(chain.links.begin(), chain.links.end(), 0.0,
                                 [](double sum, const job::Link& link) { return sum + link.seconds; }));
}

// Time in jobs that is left, from the pace of the links that ended; nothing where none told its steps.
std::optional<Seconds> time_left(const Chain& chain) {
  const auto progress = job::progress_of(chain);
  if (!progress || progress->step <= 0 || progress->steps < progress->step || is_over(chain.state))
    return std::nullopt;
  return seconds_of(chain) *
         (static_cast<double>(progress->steps - progress->step) / static_cast<double>(progress->step));
}

Json status_json(const Chain& chain, const ChainFolder& folder) {
  Json out = to_json(chain);
  const auto left = time_left(chain);
  const auto progress = job::progress_of(chain);
  out["directory"] = folder.path().string();
  out["first_job"] = folder.first_job();
  out["stop_asked"] = folder.stop_wish() == job::StopWish::stop;
  out["seconds"] = seconds_of(chain).count();
  out["step"] = progress ? Json(progress->step) : Json(nullptr);
  out["steps"] = progress && progress->steps > 0 ? Json(progress->steps) : Json(nullptr);
  out["eta"] = left
                   ? Json(format_utc(std::chrono::time_point_cast<Milliseconds>(SystemClock().now() + *left)))
                   : Json(nullptr);
  return out;
}

void print_status(const Chain& chain, const ChainFolder& folder, Console& console) {
  console.out(fmt::format("chain      {} in {}", chain.name, folder.path().string()));
  console.out(
      fmt::format("state      {}{}{}", to_text(chain.state), chain.reason.empty() ? "" : ": ", chain.reason));
  console.out(fmt::format("jobs       {} of at most {}{}", jobs_used(chain), chain.max_links,
                          chain.queued_job.empty() ? "" : ", the next one is " + chain.queued_job));
  if (chain.links.empty() && !folder.first_job().empty())
    console.out(fmt::format("waiting    job {}", folder.first_job()));
  if (const auto progress = job::progress_of(chain))
    console.out(fmt::format("progress   step {}{}", progress->step,
                            progress->steps > 0 ? fmt::format(" of {}", progress->steps) : ""));
  if (const auto left = time_left(chain))
    console.out(fmt::format("left       {} in jobs, and the queue's time", format_duration(*left)));
  for (const job::Link& link : chain.links)
    console.out(fmt::format(
        "link {:<5} job {:<12} {:<11} {:>8}  {}", link.number, link.job_id, to_text(link.end),
        link.end == job::LinkEnd::running ? "" : format_duration(Seconds(link.seconds)), link.reason));
}

bool run_quietly(const Submission& scheduler, const Argv& argv, const Context& context) {
  const SystemCommands commands;
  if (argv.empty()) return false;
  const auto done = commands.run(
      {.argv = argv, .environment = scheduler.environment(context.environment), .limit = Seconds(30)});
  return done && done->status.success();
}

// Nobody trains: the ledger is ours to close.
Result<void> close_ledger(const ChainFolder& folder, const Submission& scheduler, const Context& context) {
  const job::Lease lease =
      TRY(take_over(folder, scheduler, "dlrun chain stop", context.environment, SystemCommands()));
  Chain chain = TRY(folder.read());
  if (!is_over(chain.state)) {
    chain.state = ChainState::stopped, chain.reason = "dlrun chain stop";
    chain.queued_job.clear();
    TRY(folder.write(chain, lease));
  }
  return folder.release(lease);
}

Result<int> stop(const ChainFolder& folder, const ChainOptions& options, const Context& context) {
  const Chain chain = TRY(folder.read());
  if (is_over(chain.state)) {
    context.console.say(fmt::format("dlrun: the chain is over: {}", to_text(chain.state)));
    return 0;
  }
  const SystemCommands commands;
  const auto scheduler = TRY(find_submission(chain.scheduler, context.environment, commands));
  TRY(folder.wish_stop());
  // From the tail: what waits for a job that is cancelled before it ran may wait for ever.
  const std::string waiting = chain.links.empty() ? folder.first_job() : chain.queued_job;
  if (!waiting.empty() && !run_quietly(*scheduler, scheduler->cancel_command(waiting), context))
    context.console.say(
        fmt::format("dlrun: job {} could not be cancelled; it will end as soon as it starts", waiting));
  if (chain.state != ChainState::running || chain.links.empty()) {
    TRY(close_ledger(folder, *scheduler, context));
    context.console.say("dlrun: the chain is stopped");
    return 0;
  }
  const std::string running = chain.links.back().job_id;
  const bool told = run_quietly(
      *scheduler, options.now ? scheduler->cancel_command(running) : scheduler->stop_command(running),
      context);
  context.console.say(fmt::format("dlrun: job {} {}", running,
                                  told          ? options.now ? "is cancelled" : "is asked to save and end"
                                  : options.now ? "could not be cancelled"
                                                : "could not be told: the chain stops when it ends"));
  return 0;
}

}  // namespace

Result<int> manage_chain(const ChainOptions& options, const Context& context) {
  std::error_code problem;
  const std::filesystem::path here = std::filesystem::current_path(problem);
  if (options.action == "stop" && options.folder.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = "which chain is to be stopped?",
                      .where = {},
                      .hint = "dlrun chain stop DIR; dlrun chain status shows the newest",
                      .also = {}});
  const ChainFolder folder(options.folder.empty() ? TRY(job::newest_chain(here))
                                                  : std::filesystem::absolute(options.folder));
  if (options.action == "stop") return stop(folder, options, context);
  const Chain chain = TRY(folder.read());
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(status_json(chain, folder))));
  else
    print_status(chain, folder, context.console);
  return 0;
}

}  // namespace dlrun::cli
