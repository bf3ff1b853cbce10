// The operations that ranks do together, and what becomes of one in which a rank is lost. An operation
// (a step, an evaluation, the end) computes, sums over all ranks, and changes this rank's state only where
// all of that succeeded. So ranks differ by at most one operation when one is lost: in the new world those
// that have not completed it take the state of one that has, and where nobody has, all do it once more.
#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/train/trainer.hpp"

namespace dlrun::runtime {

Result<Trainer::Done> Trainer::complete(const std::function<Result<void>(SharedState::Attempt)>& operation) {
  auto attempt = SharedState::Attempt::first;
  for (;;) {
    auto done = operation(attempt);
    if (done) return ++results_.done, Done::here;
    if (!state_ || done.error().kind != ErrorKind::lost) return tl::unexpected(std::move(done).error());
    if (TRY(recover()) == Done::elsewhere) return Done::elsewhere;
    attempt = SharedState::Attempt::again;
  }
}

Result<Trainer::Done> Trainer::recover() {
  const std::uint64_t before = results_.done;
  for (;;) {
    const ElasticWorld::Joined joined = TRY(parts_.comm.elastic()->regroup(results_.done));
    regrouped_ = true;
    filled_ahead_ = false;
    announced_.reset();
    TRY(parts_.gradients.regroup());
    take_shards();
    Result<void> shared;
    if (joined.behind) shared = state_->share(parts_.comm, joined.source, results_);
    if (!shared && shared.error().kind == ErrorKind::lost) continue;
    TRY(std::move(shared));
    TRY(lead());
    return results_.done > before ? Done::elsewhere : Done::here;
  }
}

// The first rank of a new world has the files of the run, if the one before it is lost.
Result<void> Trainer::lead() {
  if (parts_.comm.rank() != 0 || !parts_.take_over || std::exchange(leads_, true)) return {};
  parts_.checkpoints = TRY(parts_.take_over(position_));
  if (parts_.checkpoints != nullptr) parts_.checkpoints->start_from(position_, run_);
  return {};
}

Result<Totals> Trainer::evaluate_together(const std::function<Result<Totals>()>& evaluation) {
  Totals out;
  const Done how = TRY(complete([&](SharedState::Attempt) -> Result<void> {
    out = TRY(evaluation());
    if (parts_.tensor == nullptr) return {};
    // What they decide by it is the same, whatever their processors round.
    return parts_.tensor->broadcast(std::as_writable_bytes(std::span(&out, 1)), 0);
  }));
  if (how == Done::here) results_.evaluation = out;
  return results_.evaluation;
}

// Nobody leaves before the files of the run are complete, so that another rank can complete them.
Result<void> Trainer::end_together(const std::function<Result<void>()>& last_duties) {
  const auto operation = [&](SharedState::Attempt) -> Result<void> {
    TRY(last_duties());
    return state_ ? parts_.comm.barrier() : Result<void>{};
  };
  TRY(complete(operation));
  return {};
}

}  // namespace dlrun::runtime
