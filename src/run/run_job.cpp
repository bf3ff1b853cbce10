#include "src/run/run_job.hpp"

#include <filesystem>

#include <unistd.h>

#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/install.hpp"
#include "src/base/log.hpp"
#include "src/base/shared_library.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/unload_library.hpp"
#include "src/launch/launcher.hpp"
#include "src/plan/agent_per_rank.hpp"
#include "src/plan/job_checks.hpp"
#include "src/plan/join_plan.hpp"
#include "src/plan/node_range.hpp"
#include "src/plan/run_directory.hpp"
#include "src/process/stop_signals.hpp"
#include "src/record/event_log.hpp"
#include "src/record/record.hpp"
#include "src/run/attempts.hpp"
#include "src/run/bad_node_memory.hpp"
#include "src/run/check_nodes.hpp"
#include "src/run/checks.hpp"
#include "src/run/driver.hpp"
#include "src/run/leave_bad_nodes_out.hpp"
#include "src/run/login_node.hpp"
#include "src/run/run_directory.hpp"
#include "src/run/unread_input.hpp"
#include "src/run/wait_for_writes.hpp"
#include "src/run/walltime_watch.hpp"

namespace dlrun::job {
namespace {

struct Context {
  const Request& request;
  const Clock& clock;
  RunStatus& status;
  WalltimeSettings walltime;
  std::optional<launch::BegunLauncher> begun = {};
  HeadStatusFile* status_file = nullptr;  // once there is a run directory
  Json checked = {};                      // what came of launch.check
  KeptPrologs prologs = {};               // for further attempts
  KeptAgents agents = {};                 // likewise
};

// What the agents get of a job that is planned, and how it is written down.
AttemptPlan attempt_plan(const Prepared& job) {
  const auto shown = std::make_shared<const plan::Plan>(job.plan);
  if (job.plan.mpi != plan::MpiProtocol::native) return {shown, shown};
  return {std::make_shared<const plan::Plan>(plan::agent_per_rank(job.plan)), shown};
}

// The same job with other ports, before any of its ranks runs.
Result<Replanned> plan_without(Prepared& job, const plan::TakenPorts& taken, const Context& context) {
  for (const auto& [host, ports] : taken) job.input.taken_ports[host].insert(ports.begin(), ports.end());
  job.plan = TRY(plan::make_plan(job.input));
  return Replanned{attempt_plan(job),
                   [job, data = context.request.installation.data] { return write_plan(job, data); }};
}

// "Slurm, job 17"; empty outside of a scheduler's job.
std::string scheduler_job_of(const Allocation& allocation) {
  if (!allocation.job_id) return {};
  return fmt::format("{}, job {}", scheduler_title(allocation.scheduler), *allocation.job_id);
}

// Threads may be remembered for other processors than those of this machine.
plan::NodeQuestions questions_of(const Prepared& job) {
  plan::NodeQuestions out = plan::questions_about(job.allocation, job.plan, job.spec);
  out.cpu_models = job.plan.nodes.size() > 1 && !job.input.tuned_by_model.empty();
  return out;
}

// The same job with what its nodes tell of themselves, before any of its ranks runs.
Result<Replanned> plan_with(Prepared& job, const plan::Inventories& told, const Context& context) {
  plan::fill_in(job.allocation, told, job.spec);
  job.input.allocation = plan::without_stand_ins(std::move(job.input.allocation));
  plan::fill_in(job.input.allocation, told, job.spec);
  for (const auto& [host, inventory] : told)
    if (!inventory.cpu_model.empty()) job.input.cpu_models[host] = inventory.cpu_model;
  plan::Plan planned = TRY(plan::make_plan(job.input));
  if (planned.nodes.size() != job.plan.nodes.size() || planned.ranks.size() != job.plan.ranks.size())
    return fail(ErrorKind::internal,
                "{} ranks on {} nodes were planned, and {} on {} with the nodes' answers",
                job.plan.ranks.size(), job.plan.nodes.size(), planned.ranks.size(), planned.nodes.size());
  job.plan = std::move(planned);
  return Replanned{attempt_plan(job), [job, data = context.request.installation.data]() -> Result<void> {
                     TRY(write_allocation(job));
                     return write_plan(job, data);
                   }};
}

// The job with a node more, while its ranks train.
Result<Replanned> plan_join(Prepared& job, const JoinWanted& wanted, const Context& context) {
  plan::Plan whole = job.plan;
  plan::add_nodes(
      whole, {wanted.hosts.begin() + static_cast<std::ptrdiff_t>(whole.nodes.size()), wanted.hosts.end()});
  const HostName host = whole.nodes.at(static_cast<std::size_t>(wanted.node.get())).host;
  Allocation alone = job.allocation;
  std::erase_if(alone.nodes, [&](const AllocatedNode& node) { return node.host != host; });
  const AllocatedNode unknown{.host = host, .cpus = {}, .gpus = {}};
  alone.nodes.resize(1, unknown);
  plan::fill_in(alone, {{host.get(), wanted.inventory}}, job.spec);
  job.plan = TRY(plan::plan_with_node(std::move(whole), job.input,
                                      {wanted.node, alone.nodes.front(), wanted.shards, wanted.in_place_of}));
  return Replanned{attempt_plan(job),
                   [job, data = context.request.installation.data] { return write_plan(job, data); }};
}

std::vector<std::string> hosts_of(const Allocation& allocation) {
  std::vector<std::string> out;
  for (const AllocatedNode& node : allocation.nodes) out.push_back(node.host.get());
  return out;
}

// A program that is not there may be that of launch.wrap, which no command line of the user's shows.
void name_wrap(const plan::JobSpec& spec, Outcome& outcome) {
  if (!spec.launch.wrap || !outcome.first_failure || !outcome.first_failure->hint.empty()) return;
  const std::string& program = spec.launch.wrap->command.front();
  const std::string& reason = outcome.first_failure->reason;
  for (const std::string& missing : {"program '" + program + "' is not found", program + " does not exist"})
    if (reason.find(missing) != std::string::npos)
      outcome.first_failure->hint = fmt::format(
          "launch.wrap.command has {}: install it on the nodes, or remove launch.wrap from the job", program);
}

// With an agent per rank, several would have one host.
KeptPrologs* prologs_of(const Prepared& job, Context& context) {
  const bool none = job.spec.launch.retries == 0 || job.plan.mpi == plan::MpiProtocol::native;
  return none ? nullptr : &context.prologs;
}

// A second PMIx server of one libpmix ends its process: agents unload it in between, where that can be.
bool pmix_can_be_unloaded() {
  const auto here = this_installation();
  if (!here) return false;
  const std::filesystem::path plugin = here->plugins / "libdlrun-pmix.so";
  if (!SharedLibrary::open(plugin)) return false;
  unload_library(plugin);
  return !is_library_loaded("libpmix.so.2");
}

// With an agent per rank, the site's launcher ends all of them.
AfterFailure agents_after_failure(const Prepared& job) {
  const bool may_follow = job.plan.attempt <= job.spec.launch.retries;
  const bool begins_clean = job.plan.mpi != plan::MpiProtocol::native &&
                            (job.plan.mpi != plan::MpiProtocol::pmix || pmix_can_be_unloaded());
  return may_follow && begins_clean ? AfterFailure::keep : AfterFailure::end;
}

Result<Outcome> run_planned(Prepared& job, std::unique_ptr<launch::Launcher> launcher, Context& context) {
  AttemptPlan plans = attempt_plan(job);
  const plan::Plan& plan = *plans.plan;
  plan::SecretValues secrets;
  secrets.add(job.plan);
  secrets.add(context.request.environment, job.plan.environment_rules.secrets);
  // One that a signal ended is no error: the head takes the signal.
  if (!plan::checks_need_setup(plan))
    if (auto checked = run_checks(plan, context.request.environment); !checked && !stop_signal_is_held())
      return fail(hidden(secrets, std::move(checked).error()));
  FileWriter writer;
  EventLog events = TRY(EventLog::open(plan.run_directory + "/events.jsonl", context.clock, writer, secrets));
  context.status_file->change([&](LiveStatus& live) { live.begin_attempt(*plans.shown); });
  events.add({{"event", "planned"},
              {"attempt", plan.attempt},
              {"ranks", plan.world_size()},
              {"nodes", plan.nodes.size()}});
  context.agents.forget_lost();
  Outcome outcome = TRY(run_attempt(
      std::move(plans),
      {.launcher = std::move(launcher),
       .writer = writer,
       .events = events,
       .secrets = secrets,
       .status = context.status,
       .status_file = *context.status_file,
       .environment = context.request.environment,
       .plan_without = [&](const plan::TakenPorts& taken) { return plan_without(job, taken, context); },
       .plan_with = [&](const plan::Inventories& told) { return plan_with(job, told, context); },
       .plan_join = [&](const JoinWanted& wanted) { return plan_join(job, wanted, context); },
       .make_launcher =
           [&](const plan::Plan& alone) {
             return launch::choose_launcher(
                 alone, launch_settings(job.spec.launch, job.allocation, context.request.environment, {}));
           },
       .hosts = hosts_of(job.allocation),
       .collectives = collectives_of(job.spec.launch.relay, plan),
       .questions = questions_of(job),
       .walltime = context.walltime,
       .scheduler_job = scheduler_job_of(job.allocation),
       .input_rank = context.request.input_rank,
       .prologs = prologs_of(job, context),
       .kept = context.agents,
       .agents = agents_after_failure(job)}));
  name_wrap(job.spec, outcome);
  hide(secrets, outcome);
  events.add({{"event", "ended"}, {"exit_code", outcome.exit_code}, {"reason", reason_of(outcome)}});
  wait_until_written(writer, context.status);
  if (!events.state() && outcome.exit_code == 0) return fail(events.state().error());
  return outcome;
}

// A run that did not come so far that a rank could end.
Outcome outcome_of(const Error& error) {
  Outcome outcome;
  outcome.exit_code = to_int(exit_code(error.kind));
  outcome.error = error.text();
  return outcome;
}

Result<std::unique_ptr<launch::Launcher>> choose_launcher(const Prepared& job, const Context& context) {
  return launch::choose_launcher(
      job.plan, launch_settings(job.spec.launch, job.allocation, context.request.environment, context.begun));
}

// launch.check. Where a node is left out, the launcher is another one, and what was written of the plan.
Result<std::unique_ptr<launch::Launcher>> check_first(Prepared& job,
                                                      std::unique_ptr<launch::Launcher> launcher,
                                                      Context& context) {
  if (job.spec.launch.check == plan::CheckUse::off) return launcher;
  const CheckedNodes checked = TRY(leave_bad_nodes_out(job, context.request.environment, context.begun,
                                                       context.clock.now(), context.status));
  context.checked = to_json(checked);
  if (checked.left_out.empty()) return launcher;
  TRY(write_allocation(job));
  TRY(write_plan(job, context.request.installation.data));
  (void)context.status.planned(job.plan);  // its nodes are new; the ranks are the same
  return choose_launcher(job, context);
}

// A node that was lost while its ranks ran is left out by the next jobs, too.
void remember_lost(const Prepared& job, const Outcome& outcome, const Context& context) {
  if (job.spec.launch.check == plan::CheckUse::off || outcome.interrupted_by) return;
  const health::BadNodes memory(context.request.environment,
                                cluster_of(job.allocation.scheduler, context.request.environment));
  const Instant until =
      context.clock.now() + std::chrono::duration_cast<Milliseconds>(job.spec.launch.bad_node_memory);
  for (const std::string& host : outcome.bad_hosts)
    if (const auto written = memory.remember({host, reason_of(outcome), until}); !written)
      context.status.note("warning: bad nodes are not remembered: " + written.error().what);
}

// Plans the job again for one more attempt, on good nodes.
Result<void> plan_again(Prepared& job, const Attempts& attempts, const Outcome& outcome,
                        const Context& context) {
  const std::set<std::string> without = attempts.left_out(job.allocation);
  job.input.previous = plan::PreviousAttempt{.ranks = job.plan.world_size(),
                                             .reason = reason_of(outcome),
                                             .left_out = {without.begin(), without.end()}};
  job.input.allocation = plan::with_stand_ins(TRY(attempts.without_bad_nodes(job.allocation)), job.spec);
  if (!job.spec.resources.min_nodes) job.input.spec.resources.nodes = static_cast<int>(attempts.nodes());
  ++job.input.attempt;
  job.plan = TRY(plan::make_plan(job.input));
  return write_further_attempt(job, context.request.installation.data);
}

// Training that is to be over before it began is a mistake to be told, not a run.
Result<void> check_time_left(const WalltimeSettings& walltime, Instant now) {
  const auto end = walltime.end();
  if (!end || *end > now) return {};
  return fail(Error{
      .kind = ErrorKind::allocation,
      .what =
          fmt::format("the allocation ended at {}, {} ago", format_utc(*end), format_duration(now - *end)),
      .where = {},
      .hint = "dlrun allocation shows the source of its end; is the clock of this machine right?",
      .also = {}});
}

// What others see of the run before it is under way.
HeadStatus first_status(const Prepared& job, Instant began) {
  return {.process = this_process(),
          .name = job.plan.name,
          .job_id = job.plan.job_id,
          .framework = job.plan.framework,
          .scheduler = job.allocation.scheduler,
          .scheduler_job = job.allocation.job_id,
          .nodes = job.plan.nodes.size(),
          .ranks = job.plan.ranks.size(),
          .began = began,
          .written = began,
          .phase = "preparing"};
}

Result<void> check_input_rank(const Request& request, const plan::Plan& plan) {
  if (!request.input_rank || request.input_rank->get() < plan.world_size()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("--stdin: the job has no rank {}", *request.input_rank),
                    .where = {},
                    .hint = fmt::format("its ranks are 0 to {}", plan.world_size() - 1),
                    .also = {}});
}

struct Ran {
  Result<Outcome> last;
  Json attempts = Json::array();
  std::vector<TimeParts> parts = {};
};

// Whether the job was refused before anything started: what the user repairs, and then gives the same name
// again.
bool is_refused(const Ran& ran) {
  if (ran.last || ran.attempts.size() > 1) return false;
  const ErrorKind kind = ran.last.error().kind;
  return kind == ErrorKind::usage || kind == ErrorKind::input || kind == ErrorKind::allocation;
}

// Attempt after attempt, until one ends well or another is not worth it.
Ran run_attempts(Prepared& job, std::unique_ptr<launch::Launcher> launcher, Context& context) {
  Attempts attempts(job.spec.launch.retries, plan::fewest_nodes(job.spec.resources, job.plan.nodes.size()));
  auto checked = check_first(job, std::move(launcher), context);
  Ran out{.last =
              checked ? run_planned(job, std::move(*checked), context) : fail(std::move(checked).error())};
  for (;;) {
    const Outcome outcome = out.last ? *out.last : outcome_of(out.last.error());
    out.attempts.push_back(attempt_record(job.plan, outcome));
    out.parts.push_back(outcome.time);
    remember_lost(job, outcome, context);
    if (!out.last || !attempts.should_retry(outcome)) return out;
    if (context.walltime.scheduler_end)
      context.walltime.scheduler_end = outcome.walltime.end;  // it may have been moved
    context.status.note(reason_of(outcome));
    if (auto planned = plan_again(job, attempts, outcome, context); !planned) {
      context.status.note(planned.error().text());
      return out;
    }
    const std::set<std::string> without = attempts.left_out(job.allocation);
    context.status.note(fmt::format(
        "attempt {} of {}{}", job.plan.attempt, job.spec.launch.retries + 1,
        without.empty() ? "" : " without " + join(std::vector(without.begin(), without.end()), ", ")));
    (void)context.status.planned(job.plan);  // its nodes are new; the ranks are those of the first attempt
    auto next = choose_launcher(job, context);
    out.last = next ? run_planned(job, std::move(*next), context) : fail(std::move(next).error());
  }
}

}  // namespace

Result<RunReport> run_job(const Request& request, const Clock& clock, RunStatus& status) {
  const Instant began = clock.now();
  const Ticks began_ticks = clock.ticks();
  const auto begun = launch::begin_launcher(request.environment);
  TRY(log::check_level(request.environment.get(log::kVariable)));
  Prepared job = TRY(prepare(request, began));
  TRY(check_input_rank(request, job.plan));
  const WalltimeSettings walltime = walltime_settings(job.spec, job.allocation, began, began_ticks);
  TRY(check_time_left(walltime, clock.now()));
  Context context{request, clock, status, walltime, begun};
  auto launcher = TRY(choose_launcher(job, context));
  TRY(status.planned(job.plan));
  // Schedulers give a batch job its own script, and much else, as standard input.
  if (const auto unread = unread_input(STDIN_FILENO); unread && !request.input_rank && !job.allocation.job_id)
    status.note(*unread);
  for (const auto* warnings : {&job.spec.warnings, &job.allocation.warnings})
    for (const std::string& warning : *warnings) status.note("warning: " + warning);
  if (const auto login = login_node_warning(request, job.allocation)) status.note("warning: " + *login);
  hold_stop_signals();  // from here on a signal ends a run, with a record, and not a half-written folder
  const std::optional<JobStart> start =
      request.run_directory ? job_start(job.allocation, request.environment, session_leader()) : std::nullopt;
  std::error_code problem;
  const NameBefore before =
      std::filesystem::exists(job.plan.run_directory, problem) ? NameBefore::folder : NameBefore::free;
  const std::optional<Lease> lease = TRY(claim_run_directory(job.plan.run_directory, start, status));
  std::optional<HeadStatusFile> status_file(std::in_place, job.plan.run_directory,
                                            job.spec.launch.metrics_file, first_status(job, began),
                                            stop_this_run);
  context.status_file = &*status_file;
  TRY(write_run_directory(job, request.installation.data));
  TRY(log::open(request.environment.get(log::kVariable), plan::head_log_path(job.plan)));
  Ran ran = run_attempts(job, std::move(launcher), context);
  context.agents.dismiss();
  RunReport report{.outcome = ran.last ? *ran.last : outcome_of(ran.last.error()), .record = {}};
  const auto tell_end = [&](LiveStatus& live) { live.ended(report.outcome); };
  // Who looks for a job of a scheduler is to find a record.
  if (request.run_directory && !start && is_refused(ran)) {
    status_file->change(tell_end);  // the metrics file may be elsewhere
    status_file.reset();            // it writes to its end
    give_up_run_directory(job, before);
    return fail(ran.last.error());
  }
  const RecordedJob recorded{job.plan, job.spec, job.allocation, job.adapter.source};
  Json sources = provenance(recorded, request.environment, report.outcome.provenance);
  const Instant ended = clock.now();
  report.record =
      make_record(recorded, report.outcome, {began, ended, sum_of(ran.parts, clock.ticks() - began_ticks)},
                  std::move(ran.attempts), std::move(sources));
  if (!context.checked.is_null()) report.record["node_check"] = context.checked;
  status_file->change(tell_end);
  if (const std::string problem = status_file->problem(); !problem.empty())
    status.note("warning: other commands cannot see the state of the run: " + problem);
  auto written = write_at_end(job.plan.run_directory + "/record.json", to_pretty_text(report.record), status);
  if (!written) written.error().what = "there is no record of this run: " + written.error().what;
  // A verdict is worth more than the news that it could not be written down.
  const bool is_all = ran.last && !report.outcome.unreachable && report.outcome.exit_code == 0;
  if (!written && is_all) return fail(written.error());
  if (!written) status.problem(written.error().text());
  if (!ran.last) return fail(ran.last.error());
  if (report.outcome.unreachable) return fail(*report.outcome.unreachable);
  status.finished(job.plan, report.outcome);
  return report;
}

}  // namespace dlrun::job
