#include "src/run/failures.hpp"

#include <utility>

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

void Failures::add(FirstFailure failure, Ticks now) {
  if (decided() || (failure.rank && ended_in_time_)) return;
  first_ = std::move(failure);
  failed_at_ = now;
}

void Failures::follow(Rank rank, const std::optional<ExitStatus>& status, const std::string& cause) {
  const bool by_itself = !signalled_ && status && status->signal == 0;
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
