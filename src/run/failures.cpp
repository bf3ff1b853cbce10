#include "src/run/failures.hpp"

#include <csignal>
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::job {

FirstFailure failure_of_host(std::string host, int code, std::string reason) {
  FirstFailure out;
  out.host = std::move(host);
  out.code = code;
  out.reason = std::move(reason);
  return out;
}

FirstFailure failure_of_rank(const plan::Plan& plan, const plan::RankPlan& rank, int code,
                             std::string reason) {
  FirstFailure out = failure_of_host(plan.nodes.at(static_cast<std::size_t>(rank.node.get())).host.get(),
                                     code, std::move(reason));
  out.rank = rank.rank;
  out.role = rank.role;
  out.task_index = rank.task_index;
  out.log_path = plan::rank_log_path(plan, rank);
  return out;
}

bool failed_by_itself(const FirstFailure& failure) {
  return failure.reason.starts_with("exit code ") || failure.reason.starts_with("killed by SIGABRT") ||
         failure.reason.starts_with("called MPI_Abort");
}

Standing Failures::standing_of(const plan::Plan& plan, int code,
                               const std::optional<ExitStatus>& status) const {
  const bool lost_another = plan.framework == "builtin" && code == to_int(ExitCode::lost);
  const bool ended_by_us = status && status->signal != 0 && signals_.contains(status->signal);
  const bool wrote_to_nobody = status && status->signal == SIGPIPE && plan.world_size() > 1;
  return lost_another || ended_by_us || wrote_to_nobody ? Standing::follows : Standing::of_itself;
}

void Failures::add(FirstFailure failure, Ticks now, Standing standing) {
  if (interrupted_by_ || (failure.rank && ended_in_time_)) return;
  if (first_ && (standing_ == Standing::of_itself || standing == Standing::follows)) return;
  first_ = std::move(failure);
  standing_ = standing;
  failed_at_ = now;
}

void Failures::follow(Rank rank, const std::optional<ExitStatus>& status, const std::string& cause) {
  const bool by_itself = signals_.empty() && status && status->signal == 0;
  if (!first_ || !first_->rank || *first_->rank == rank || !by_itself) return;
  if (first_->failed_after++ == 0) first_->failed_after_cause = cause;
}

void Failures::interrupt(const CaughtSignal& signal, const Cancellation& cancellation, Ticks now) {
  if (first_ && cancellation.explains(signal, *first_, now - failed_at_)) first_.reset();
  if (decided()) return;
  interrupted_by_ = signal.number;
  cancelled_by_ = cancellation.sent_by(signal);
}

void Failures::tell(Outcome& outcome) const {
  outcome.first_failure = first_;
  outcome.interrupted_by = interrupted_by_;
  outcome.cancelled_by = cancelled_by_;
  if (!interrupted_by_ || first_)
    outcome.bad_hosts.insert(outcome.bad_hosts.end(), bad_hosts_.begin(), bad_hosts_.end());
}

}  // namespace dlrun::job
