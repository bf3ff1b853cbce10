// The operations that ranks do together, what becomes of one in which a rank is lost, and how ranks leave and
// join between two steps. An operation (a step, an evaluation, the end) computes, sums over all ranks, and
// changes this rank's state only where all of that succeeded. So ranks differ by at most one operation when
// one is lost: in the new world those that have not completed it take the state of one that has, and where
// nobody has, all do it once more. The first operation is the start, at whose end all ranks know where to
// start (start_elastic.hpp).
#include "runtime/train/start_elastic.hpp"
#include "runtime/train/trainer.hpp"

namespace dlrun::runtime {

void Trainer::begin_elastic() {
  state_.emplace(parts_.engine);
  const ElasticWorld& world = *parts_.comm.elastic();
  if (!world.has_world()) return;  // it is to join, and has not started with the others
  results_.done = kStarted;
  regrouped_ = world.generation() > 0;
}

Result<Trainer::Done> Trainer::complete(const std::function<Result<void>(SharedState::Attempt)>& operation) {
  auto attempt = SharedState::Attempt::first;
  for (;;) {
    auto done = operation(attempt);
    if (done) return ++results_.done, Done::here;
    if (!state_ || done.error().kind != ErrorKind::lost) return tl::unexpected(std::move(done).error());
    const Done how = TRY(recover(ElasticWorld::Cause::lost));
    if (how == Done::left) return tl::unexpected(std::move(done).error());
    if (how == Done::elsewhere) return Done::elsewhere;
    attempt = SharedState::Attempt::again;
  }
}

Result<Trainer::Done> Trainer::recover(ElasticWorld::Cause cause) {
  return enter(TRY(parts_.comm.elastic()->regroup(results_.done, cause)), cause);
}

// This world, or one after it where ranks are lost meanwhile.
Result<Trainer::Done> Trainer::enter(ElasticWorld::Joined joined, ElasticWorld::Cause cause) {
  const std::uint64_t before = results_.done;
  for (;;) {
    if (!joined.member) return left_ = true, Done::left;
    auto connected = connect_and_share(joined);
    if (connected) break;
    if (connected.error().kind != ErrorKind::lost) return tl::unexpected(std::move(connected).error());
    cause = ElasticWorld::Cause::lost;
    joined = TRY(parts_.comm.elastic()->regroup(results_.done, cause));
  }
  TRY(lead(cause));
  return results_.done > before ? Done::elsewhere : Done::here;
}

// Devices first: one that was connected to a lost rank can be neither read nor written. The source of the
// state may be in the middle of a step, too.
Result<void> Trainer::connect_and_share(const ElasticWorld::Joined& joined) {
  regrouped_ = true;
  filled_ahead_ = false;
  announced_.reset();
  TRY(parts_.gradients.regroup());
  TRY(state_->undo_step());
  take_shards();
  if (!joined.behind) return {};
  const Standing there =
      TRY(state_->share(parts_.comm, joined.source, {results_, position_, parts_.reporter.so_far()}));
  if (there.results.done > results_.done) results_ = there.results;
  if (std::exchange(joins_, false)) stand_at(there);
  return {};
}

// The world of which the launcher asks for another is the one in which the step was done: if it is lost
// before the ranks leave it, the launcher asks again.
void Trainer::change_world_after(const StepTotals& step) {
  if (state_ && step.requests.regroup) world_to_leave_ = parts_.comm.elastic()->generation();
}

// Before a step: whether this rank is of the world that comes.
Result<bool> Trainer::stays() {
  const std::optional<int> asked = std::exchange(world_to_leave_, std::nullopt);
  if (!asked || *asked != parts_.comm.elastic()->generation()) return true;
  return TRY(recover(ElasticWorld::Cause::at_step)) != Done::left;
}

// A rank that joins has the samples and the engine, and nothing that was trained. It is a member of the world
// before it has connected to the others' devices: where it cannot, the run goes on as if it were lost.
Result<void> Trainer::join() {
  joins_ = true;
  const auto how = recover(ElasticWorld::Cause::joining);
  if (!how) {
    Error error = how.error();
    error.kind = ErrorKind::lost;
    return fail(std::move(error));
  }
  if (*how == Done::left)
    return fail(ErrorKind::lost, "the run ended, or gave this rank up, before it had joined");
  if (joins_) return fail(ErrorKind::internal, "the others have trained nothing that this rank could take");
  return {};
}

void Trainer::stand_at(const Standing& there) {
  position_ = there.position;
  epoch_order_ = order_.epoch(position_.epoch);
  last_.step = position_.step;
  last_.epoch = position_.epoch;
  parts_.reporter.go_on_from(there.epoch);
  parts_.reporter.set_length(length());
}

// The files of the run are another rank's once the launcher hears of it.
Result<Ending> Trainer::leave() {
  if (leads_ && parts_.checkpoints != nullptr) TRY(parts_.checkpoints->finish(parts_.reporter));
  if (leads_ && parts_.hand_over) parts_.hand_over();
  TRY(parts_.comm.elastic()->part(results_.done));
  return Ending::left;
}

// The first rank of a new world has the files of the run, if the one before it has left or is lost. One that
// is lost may have been writing a checkpoint, which is none then: another one is written at once.
Result<void> Trainer::lead(ElasticWorld::Cause cause) {
  if (parts_.comm.rank() != 0 || !parts_.take_over || std::exchange(leads_, true)) return {};
  parts_.checkpoints = TRY(parts_.take_over(position_));
  if (parts_.checkpoints == nullptr) return {};
  parts_.checkpoints->start_from(position_, run_);
  if (cause == ElasticWorld::Cause::lost) parts_.checkpoints->want_one();
  return {};
}

Result<Totals> Trainer::evaluate_together(const std::function<Result<Totals>()>& evaluation) {
  Totals out;
  const Done how = TRY(complete([&](SharedState::Attempt) -> Result<void> {
    out = TRY(evaluation());
    // What they decide by it is the same, whatever their processors round.
    const auto bytes = std::as_writable_bytes(std::span(&out, 1));
    if (parts_.tensor != nullptr) TRY(parts_.tensor->broadcast(bytes, 0));
    if (!parts_.pipeline) return {};
    Communicator& stages = parts_.pipeline->group;  // the last one has the losses
    return stages.broadcast(bytes, stages.size() - 1);
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
