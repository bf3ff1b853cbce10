#include "src/cli/cmd_chain.hpp"

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/chain/folder.hpp"
#include "src/chain/times.hpp"
#include "src/cli/usage_error.hpp"
#include "src/cli/world_of.hpp"
#include "src/process/command.hpp"
#include "src/report/head_life.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<ChainCommand> kChainFlags[] = {
    {{.name = "--now", .help = "with stop: end the running job at once"}, &ChainCommand::now},
};

using job::Chain;
using job::ChainFolder;
using job::ChainState;
using report::all_gone;
using report::too_few_jobs;
using Shown = report::ChainView;

// "start 12.0s (4 %), useful 4m40s (93 %), ..."
std::string time_text(const job::TimeParts& time) {
  std::string out = format_duration(time.total);
  const char* separator = ": ";
  for (const auto& [name, part] : {std::pair("start", time.start), std::pair("useful", time.useful),
                                   std::pair("checkpoint", time.checkpoint), std::pair("lost", time.lost),
                                   std::pair("idle", time.idle)}) {
    out +=
        fmt::format("{}{} {} ({:.0f} %)", separator, name, format_duration(part), 100 * (part / time.total));
    separator = ", ";
  }
  return out;
}

std::string left_text(const job::TimeLeft& left) {
  const std::string queue = left.further_links == 0 ? ""
                            : left.queue            ? fmt::format(", {} in the queue before {} more",
                                                                  format_duration(*left.queue), left.further_links)
                                                    : ", plus time in the queue";
  return fmt::format("{} in jobs{}: done {}", format_duration(left.in_jobs), queue,
                     report::eta_text(left, SystemClock().now()));
}

}  // namespace

void print_chain(const Shown& shown, const ChainFolder& folder, Console& console) {
  const Chain& chain = shown.chain;
  console.out(fmt::format("chain      {} in {}", chain.name, folder.path().string()));
  console.out(
      fmt::format("state      {}{}{}", word_of(chain.state), chain.reason.empty() ? "" : ": ", chain.reason));
  console.out(fmt::format("jobs       {} of a maximum of {}", links_used(chain), chain.max_links));
  if (!shown.waiting.empty())
    console.out(
        fmt::format("pending    job {}{}", join(shown.waiting, ", "),
                    shown.held.empty() ? "" : ": on hold (" + shown.held + "), until it is released"));
  if (const std::string warning = too_few_jobs(shown); !warning.empty()) console.out("warning    " + warning);
  if (const auto progress = job::progress_of(chain))
    console.out(fmt::format("progress   step {}{}", progress->step,
                            progress->steps > 0 ? fmt::format(" of {}", progress->steps) : ""));
  if (shown.time.total.count() > 0) console.out("time       " + time_text(shown.time));
  if (shown.left) console.out("left       " + left_text(*shown.left));
  for (const job::Link& link : chain.links)
    console.out(fmt::format(
        "link {:<5} job {:<12} {:<11} {:>8}  {}", link.number, link.job_id, word_of(link.end),
        link.end == job::LinkEnd::running ? "" : format_duration(Seconds(link.seconds)), link.reason));
}

namespace {

bool run_quietly(const Submission& scheduler, const Argv& argv, const Context& context) {
  const SystemCommands commands;
  if (argv.empty()) return false;
  const auto done = commands.run(
      {.argv = argv, .environment = scheduler.environment(context.environment), .limit = Seconds(30)});
  return done && done->status.success();
}

// Nobody trains: the ledger is ours to close.
Result<void> close_ledger(const ChainFolder& folder, const Submission& scheduler, const Context& context) {
  const Lease lease =
      TRY(take_over(folder, scheduler, {.process = this_process(), .job = {}, .run = "dlrun chain stop"},
                    context.environment, SystemCommands()));
  Chain chain = TRY(folder.read());
  if (!is_over(chain.state)) {
    chain.state = ChainState::stopped, chain.reason = "dlrun chain stop";
    chain.queued_job.clear();
    TRY(folder.write(chain, lease));
  }
  return {};
}

}  // namespace

namespace {

// A link whose folder was moved reads the request nowhere.
Result<void> check_link_is_here(const ChainFolder& folder, const job::Link& link,
                                const report::World& world) {
  const std::filesystem::path run = folder.path() / std::filesystem::path(link.run_directory).filename();
  std::vector<std::string> problems;
  const Json status = report::read_or_null(run / "status.json", problems);
  const auto head = job::head_status_from_json(status, "status.json");
  return head ? report::check_head_works_in({run, *head}, link.run_directory, world.pause) : Result<void>();
}

}  // namespace

Result<int> stop_chain(const ChainFolder& folder, StopTime time, const Context& context) {
  const WorldOf world_of(context);
  const report::World world = world_of.world();
  const Chain chain = TRY(folder.read());
  if (is_over(chain.state)) {
    context.console.say(fmt::format("dlrun: the chain is over: {}", word_of(chain.state)));
    return 0;
  }
  const SystemCommands commands;
  const auto scheduler = TRY(find_submission(chain.scheduler, context.environment, commands));
  TRY(check_job_ids(*scheduler, folder, chain));
  TRY(folder.request_stop());
  // From the tail: what waits for a job that is cancelled before it ran may wait for ever.
  const std::vector<std::string> waiting = waiting_jobs(folder, chain);
  for (auto job = waiting.rbegin(); job != waiting.rend(); ++job)
    if (!run_quietly(*scheduler, scheduler->cancel_command(*job), context) &&
        !all_gone({*job}, *scheduler, world))
      context.console.say(
          fmt::format("dlrun: job {} could not be cancelled; it will end as soon as it starts", *job));
  const bool gone = is_over(TRY(report::read_chain(folder, world)).state);
  if (gone || chain.state != ChainState::running || chain.links.empty()) {
    TRY(close_ledger(folder, *scheduler, context));
    context.console.say("dlrun: the chain is stopped");
    return 0;
  }
  const std::string running = chain.links.back().job_id;
  if (time == StopTime::when_saved) {
    TRY(check_link_is_here(folder, chain.links.back(), world));
    context.console.say(fmt::format(
        "dlrun: job {} will save and end: it reads the request from the folder of the chain within a second",
        running));
    return 0;
  }
  const bool told = run_quietly(*scheduler, scheduler->cancel_command(running), context);
  context.console.say(
      fmt::format("dlrun: job {} {}", running, told ? "is cancelled" : "could not be cancelled"));
  return 0;
}

namespace {

// Several chains, and none is named: each with its state, the newest first.
Result<int> list_chains(const std::vector<std::filesystem::path>& chains, const Context& context) {
  const WorldOf world_of(context);
  for (const std::filesystem::path& path : chains) {
    const auto chain = report::read_chain(ChainFolder(path), world_of.world());
    if (!chain) {
      context.console.say("dlrun: " + chain.error().text());
      continue;
    }
    const auto progress = job::progress_of(*chain);
    context.console.out(fmt::format(
        "{:<8} {:<20} {:>3} of {:>3} jobs{}  {}", word_of(chain->state), chain->name, links_used(*chain),
        chain->max_links, progress ? fmt::format("  step {} of {}", progress->step, progress->steps) : "",
        path.lexically_relative(path.parent_path().parent_path()).string()));
  }
  context.console.say("dlrun: details: dlrun chain status DIR");
  return 0;
}

}  // namespace

const char* const ChainCommand::kExamples = R"(Examples:
  dlrun submit --chain 8 train.yaml      one training over up to eight jobs
  dlrun chain status                     where the newest chain below runs/ stands
  dlrun chain stop DIR                   end it with a checkpoint; --now does not wait for one)";

void ChainCommand::add(Arguments& arguments) {
  arguments.argument("ACTION", action, "status or stop");
  arguments.argument("DIR", folder, "folder of the chain (default: the newest one below runs/)");
  arguments.flags<ChainCommand>(kChainFlags, *this);
}

Result<void> ChainCommand::finish(const ExtraArguments&) {
  static const std::vector<std::string> actions{"status", "stop"};
  if (action.empty()) return fail(usage_error("chain", "the action is missing; expected status or stop"));
  if (action != "status" && action != "stop") return fail(unknown_action("chain", action, actions));
  return {};
}

Result<int> ChainCommand::run(const Context& context) {
  std::error_code problem;
  const std::filesystem::path here = std::filesystem::current_path(problem);
  if (action == "stop" && folder.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = "the folder of the chain is missing",
                      .where = {},
                      .hint = "dlrun chain stop DIR; dlrun chain status shows the newest",
                      .also = {}});
  if (const auto chains = job::all_chains(here); folder.empty() && chains.size() > 1 && !context.common.json)
    return list_chains(chains, context);
  const ChainFolder chain(folder.empty() ? TRY(job::newest_chain(here)) : std::filesystem::absolute(folder));
  if (action == "stop") return stop_chain(chain, now ? StopTime::now : StopTime::when_saved, context);
  const WorldOf world_of(context);
  const Shown shown = TRY(report::chain_view_of(chain, world_of.world()));
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(report::to_json(shown, chain, SystemClock().now()))));
  else
    print_chain(shown, chain, context.console);
  return 0;
}

}  // namespace dlrun::cli
