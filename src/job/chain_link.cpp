#include "src/job/chain_link.hpp"

#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/job/record.hpp"

namespace dlrun::job {
namespace {

LinkEnd end_of(const Outcome& outcome) {
  if (outcome.exit_code == 0) return LinkEnd::done;
  if (outcome.exit_code == to_int(ExitCode::again)) return LinkEnd::again;
  // A node that died is the cluster's fault, as a preemption is, and no failure of the job.
  const bool by_cluster = outcome.interrupted_by || !outcome.bad_hosts.empty();
  return by_cluster ? LinkEnd::interrupted : LinkEnd::failed;
}

}  // namespace

Result<ChainLink> ChainLink::begin(const std::filesystem::path& folder, std::string checkpoint_folder,
                                   Around around) {
  ChainLink out(ChainFolder(folder), std::move(checkpoint_folder), std::move(around));
  TRY(out.start());
  return out;
}

Environment ChainLink::submit_environment() const {
  Environment out = around_.environment;
  out.set("PATH", chain_.search_path);
  return out;
}

Result<void> ChainLink::start() {
  began_ = around_.clock.now();
  chain_ = TRY(folder_.read());
  scheduler_ = TRY(find_submission(chain_.scheduler, around_.environment, around_.commands));
  job_id_ = around_.environment.get(scheduler_->own_job_variable());
  if (job_id_.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{} is not set: this is no job of {}",
                                          scheduler_->own_job_variable(), chain_.scheduler),
                      .where = {},
                      .hint = "--link-of belongs into the script that dlrun submit --chain writes",
                      .also = {}});
  if (is_over(chain_.state)) return {};
  const Lease lease = TRY(take_over(folder_, *scheduler_, job_id_, submit_environment(), around_.commands));
  chain_ = TRY(folder_.read());  // as the holder before us left it
  account_for_vanished();
  const Verdict verdict = judge(chain_, folder_.stop_wish());
  if (chain_.queued_job == job_id_) chain_.queued_job.clear();
  if (is_over(chain_.state)) return folder_.release(lease);
  if (is_over(verdict.state)) {
    chain_.state = verdict.state, chain_.reason = verdict.reason;
    cancel_next();
    TRY(folder_.write(chain_, lease));
    return folder_.release(lease);
  }
  lease_ = lease;
  Link link;
  link.number = lease.number;
  link.job_id = job_id_;
  link.run_directory = (folder_.path() / fmt::format("link-{:04}", lease.number)).string();
  link.began = format_utc(began_);
  link.checkpoint_mark = checkpoint_mark(checkpoint_folder_);
  chain_.links.push_back(std::move(link));
  chain_.state = ChainState::running;
  TRY(folder_.write(chain_, lease_));
  if (const auto next = hand_in_next(); !next)
    around_.note("the next link is not handed in yet: " + next.error().text());
  return folder_.write(chain_, lease_);
}

// A link that wrote no end down was killed. What it saved tells whether it was of use.
void ChainLink::account_for_vanished() {
  if (chain_.links.empty() || chain_.links.back().end != LinkEnd::running) return;
  Link& last = chain_.links.back();
  last.end = LinkEnd::vanished;
  last.reason =
      last.job_id == job_id_ ? "requeued by the scheduler" : "killed, or its node died: it left no record";
  last.saved = checkpoint_mark(checkpoint_folder_) != last.checkpoint_mark;
  last.ended = format_utc(began_);
}

Result<void> ChainLink::hand_in_next() {
  if (!chain_.queued_job.empty() || jobs_used(chain_) >= static_cast<std::size_t>(chain_.max_links))
    return {};
  chain_.queued_job =
      TRY(submit_job(*scheduler_, {}, chain_.script, job_id_, submit_environment(), around_.commands));
  return {};
}

void ChainLink::cancel_next() {
  if (chain_.queued_job.empty()) return;
  const auto done = around_.commands.run({.argv = scheduler_->cancel_command(chain_.queued_job),
                                          .environment = scheduler_->environment(submit_environment()),
                                          .limit = Seconds(30)});
  // It would see that the chain is over and end at once.
  if (!done || !done->status.success())
    around_.note(fmt::format("job {}, the next link, could not be cancelled", chain_.queued_job));
  chain_.queued_job.clear();
}

Result<void> ChainLink::end(const Result<RunReport>& report) {
  Link& link = chain_.links.back();
  const Instant now = around_.clock.now();
  link.ended = format_utc(now);
  link.seconds = Seconds(now - began_).count();
  link.saved = checkpoint_mark(checkpoint_folder_) != link.checkpoint_mark;
  if (report) {
    link.end = end_of(report->outcome);
    link.exit_code = report->outcome.exit_code;
    link.reason = reason_of(report->outcome);
    link.progress = report->outcome.last_progress;
  } else {
    link.end = LinkEnd::failed;
    link.exit_code = to_int(exit_code(report.error().kind));
    link.reason = report.error().text();
  }
  Verdict verdict = judge_next(chain_, folder_.stop_wish());
  if (is_over(verdict.state)) {
    cancel_next();
  } else if (const auto next = hand_in_next(); !next) {
    verdict = {ChainState::failed, "the next link cannot be handed in: " + next.error().text()};
  }
  chain_.state = verdict.state, chain_.reason = verdict.reason;
  if (is_over(verdict.state))
    around_.note(fmt::format("the chain is {}: {}", to_text(verdict.state), verdict.reason));
  TRY(folder_.write(chain_, lease_));
  return folder_.release(lease_);
}

}  // namespace dlrun::job
