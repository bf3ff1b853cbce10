#include "src/chain/link.hpp"

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/utc.hpp"
#include "src/chain/excluded_nodes.hpp"
#include "src/record/record.hpp"
#include "src/record/unrecorded_run.hpp"

namespace dlrun::job {
namespace {

LinkEnd end_of(const Outcome& outcome) {
  if (outcome.exit_code == 0) return LinkEnd::done;
  if (outcome.exit_code == to_int(ExitCode::again)) return LinkEnd::again;
  // A node that died is the cluster's fault, as a preemption is, and no failure of the job.
  const bool by_cluster = outcome.interrupted_by || !outcome.bad_hosts.empty();
  return by_cluster ? LinkEnd::interrupted : LinkEnd::failed;
}

// With the program's own words for it, where it had any: the ledger outlives the logs.
std::string reason_with_last_words(const Outcome& outcome) {
  std::string words;
  if (outcome.first_failure)
    for (const std::string& line : outcome.first_failure->last_lines)
      if (line.find("error") != std::string::npos || words.empty()) words = trim(line);
  return words.empty() ? reason_of(outcome) : fmt::format("{}: {}", reason_of(outcome), words);
}

}  // namespace

Result<ChainLink> ChainLink::begin(const std::filesystem::path& folder, CheckpointPlace checkpoints,
                                   Context context) {
  ChainLink out(ChainFolder(folder), std::move(checkpoints), std::move(context));
  TRY(out.start());
  return out;
}

Environment ChainLink::submit_environment() const {
  Environment out = context_.environment;
  out.set("PATH", chain_.search_path);
  return out;
}

Result<Lease> ChainLink::take() const {
  return take_over(folder_, *scheduler_, {.process = this_process(), .job = job_id_, .run = {}},
                   submit_environment(), context_.commands);
}

Result<void> ChainLink::start() {
  began_ = context_.clock.now(), began_ticks_ = context_.clock.ticks();
  chain_ = TRY(folder_.read());
  scheduler_ = TRY(find_submission(chain_.scheduler, context_.environment, context_.commands));
  job_id_ = context_.environment.get(scheduler_->own_job_variable());
  if (job_id_.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{} is not set: this is not a job of {}",
                                          scheduler_->own_job_variable(), chain_.scheduler),
                      .where = {},
                      .hint = "--link-of is set by dlrun submit --chain; do not pass it yourself",
                      .also = {}});
  if (is_over(chain_.state)) return {};
  TRY(check_job_ids(*scheduler_, folder_, chain_));
  Lease lease = TRY(take());
  chain_ = TRY(folder_.read());  // as the holder before us left it
  account_for_lost();
  const Verdict verdict = judge(chain_, folder_.stop_requested());
  if (chain_.queued_job == job_id_) chain_.queued_job.clear();
  if (is_over(chain_.state)) return {};
  if (is_over(verdict.state)) {
    chain_.state = verdict.state, chain_.reason = verdict.reason;
    cancel_waiting();
    return folder_.write(chain_, lease);
  }
  lease_ = std::move(lease);
  Link link;
  link.number = lease_->number();
  link.job_id = job_id_;
  link.run_directory = (folder_.path() / fmt::format("link-{:04}", link.number)).string();
  link.began = format_utc(began_);
  link.checkpoint_mark = checkpoint_mark(checkpoints_);
  chain_.links.push_back(std::move(link));
  chain_.state = ChainState::running;
  TRY(folder_.write(chain_, *lease_));
  if (const auto next = submit_next(); !next)
    context_.note("the next link is not submitted yet: " + next.error().text());
  return folder_.write(chain_, *lease_);
}

// A link that wrote no end down was killed. What it saved tells whether it was of use.
void ChainLink::account_for_lost() {
  if (chain_.links.empty() || chain_.links.back().end != LinkEnd::running) return;
  Link& last = chain_.links.back();
  last.end = LinkEnd::lost;
  last.reason =
      last.job_id == job_id_ ? "requeued by the scheduler" : "killed, or its node failed: it left no record";
  last.saved = checkpoint_mark(checkpoints_) != last.checkpoint_mark;
  const Instant began = parse_utc(last.began).value_or(began_);
  const UnrecordedRun run = read_unrecorded_run(last.run_directory, began);
  const Instant ended = std::min(run.last_sign, began_);
  last.ended = format_utc(ended);
  last.seconds = std::max(Seconds(ended - began), Seconds(0)).count();
  last.time = sum_of({run.time}, Seconds(last.seconds));
}

Result<void> ChainLink::submit_next() {
  if (chain_.mode != ChainMode::resubmit) return {};
  if (!chain_.queued_job.empty() || jobs_used(chain_) >= static_cast<std::size_t>(chain_.max_links))
    return {};
  chain_.queued_job = TRY(submit_job(*scheduler_, {}, chain_.script, job_id_, submit_environment(),
                                     context_.commands, excluded()));
  return {};
}

// Nodes that this link or a job before it has found bad.
std::vector<HostName> ChainLink::excluded() const {
  const auto script = read_file(chain_.script);
  return nodes_to_exclude(*scheduler_, context_.spec, script.value_or(""), submit_environment(),
                          context_.commands, context_.clock.now());
}

// The next link was submitted before our checks, so it does not know what they have found.
void ChainLink::exclude_from_waiting() {
  const std::vector<HostName> nodes = excluded();
  if (nodes.empty()) return;
  std::vector<std::string> jobs = waiting_jobs(folder_, chain_);
  std::erase(jobs, job_id_);
  for (const std::string& job : jobs) {
    const Argv command = scheduler_->exclude_command(job, nodes);
    if (command.empty()) return;
    const auto done = context_.commands.run({.argv = command,
                                             .environment = scheduler_->environment(submit_environment()),
                                             .limit = Seconds(30)});
    if (!done || !done->status.success())
      context_.note(fmt::format("job {} could not be kept off {}", job, compress_hostlist(nodes)));
  }
}

// From the last one on: one that waits for a job that never ran might be started otherwise.
void ChainLink::cancel_waiting() {
  std::vector<std::string> jobs = waiting_jobs(folder_, chain_);
  std::erase(jobs, job_id_);
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    const auto done = context_.commands.run({.argv = scheduler_->cancel_command(*job),
                                             .environment = scheduler_->environment(submit_environment()),
                                             .limit = Seconds(30)});
    // It would see that the chain is over and end at once.
    if (!done || !done->status.success())
      context_.note(fmt::format("the next job, {}, could not be cancelled", *job));
  }
  chain_.queued_job.clear();
}

// The scheduler ends this job for it, so that nothing may be left to be written down.
Result<void> ChainLink::requeue() {
  chain_.queued_job = job_id_;
  TRY(folder_.write(chain_, *lease_));
  lease_.reset();  // the next start, maybe on another host, is not to wait for us
  const CommandOutput said =
      TRY(context_.commands.run({.argv = scheduler_->requeue_command(job_id_),
                                 .environment = scheduler_->environment(submit_environment()),
                                 .limit = Seconds(60)}));
  if (said.status.success() || said.status.signal != 0) return {};  // a signal: Slurm was quicker
  lease_ = TRY(take());
  chain_.queued_job.clear();
  return fail(ErrorKind::unavailable, "{} does not requeue job {}: {}", chain_.scheduler, job_id_,
              trim(said.err.empty() ? said.out : said.err));
}

// A controller that was killed may have forgotten a job that it had taken.
bool ChainLink::is_lost(const std::string& job) const {
  const auto state = context_.commands.run({.argv = scheduler_->state_command(job),
                                            .environment = scheduler_->environment(submit_environment()),
                                            .limit = Seconds(30)});
  return state && !scheduler_->is_pending_or_alive(*state).value_or(true);
}

// The chain goes on: by what?
Result<void> ChainLink::see_to_successor() {
  if (chain_.mode == ChainMode::requeue) return requeue();
  if (chain_.mode == ChainMode::resubmit) {
    if (!chain_.queued_job.empty() && is_lost(chain_.queued_job)) {
      context_.note(fmt::format("{} lost job {}, which was next: submitting another", chain_.scheduler,
                                chain_.queued_job));
      chain_.queued_job.clear();
    }
    return submit_next();
  }
  return check_waiting();
}

// Of pre-submitted links: deleting one that waits may delete its successors.
Result<void> ChainLink::check_waiting() {
  std::vector<std::string> waiting = waiting_jobs(folder_, chain_);
  std::erase(waiting, job_id_);
  std::vector<std::string> gone;
  for (const std::string& job : waiting)
    if (is_lost(job)) gone.push_back(job);
  if (gone.size() < waiting.size()) return {};
  if (gone.empty()) return fail(ErrorKind::unavailable, "no pre-submitted job of this chain is left");
  return fail(ErrorKind::unavailable,
              "the pre-submitted jobs of this chain are gone from {} (job {}); submit again: "
              "the training resumes from its checkpoint",
              chain_.scheduler, join(gone, ", "));
}

Result<void> ChainLink::end(const Result<RunReport>& report) {
  Link& link = chain_.links.back();
  const Instant now = context_.clock.now();
  link.ended = format_utc(now);
  link.seconds = Seconds(context_.clock.ticks() - began_ticks_).count();  // the wall clock may be set
  link.time = sum_of({}, Seconds(link.seconds));
  link.saved = checkpoint_mark(checkpoints_) != link.checkpoint_mark;
  if (report) {
    link.end = end_of(report->outcome);
    link.exit_code = report->outcome.exit_code;
    link.reason = reason_with_last_words(report->outcome);
    link.progress = report->outcome.last_progress;
    const Json time = field<Json>(report->record, "time", "record").value_or(Json());
    if (const auto parts = time_parts_from_json(time, "record"))
      link.time = sum_of({*parts}, Seconds(link.seconds));
  } else {
    link.end = LinkEnd::failed;
    link.exit_code = to_int(exit_code(report.error().kind));
    link.reason = report.error().text();
  }
  Verdict verdict = judge_next(chain_, folder_.stop_requested());
  chain_.state = verdict.state, chain_.reason = verdict.reason;
  if (is_over(verdict.state)) {
    cancel_waiting();
  } else if (const auto next = see_to_successor(); !next) {
    verdict = {ChainState::failed, "there is no next link: " + next.error().text()};
    chain_.state = verdict.state, chain_.reason = verdict.reason;
  }
  if (!is_over(verdict.state)) exclude_from_waiting();
  if (is_over(verdict.state))
    context_.note(fmt::format("the chain is {}: {}", word_of(verdict.state), verdict.reason));
  if (lease_) TRY(folder_.write(chain_, *lease_));  // else it was written before the job was requeued
  lease_.reset();
  return {};
}

}  // namespace dlrun::job
