// Checkpointing: checkpoints in a run: when one is due, that they are written while training goes on, and
// that the last one is finished before the process ends. Where the state is equal on all ranks, rank 0 alone
// has this. Where ranks have parts of it, all have: they begin a checkpoint after the same step, and go on
// from phase to phase after the same step, in which no rank was still writing (StepTotals::writing).
#pragma once

#include <functional>
#include <memory>

#include "runtime/checkpoint/part_writer.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/train/report/reporter.hpp"
#include "runtime/train/schedule.hpp"
#include "runtime/train/totals.hpp"
#include "runtime/train/train_spec.hpp"
#include "src/base/lease.hpp"

namespace dlrun::runtime {

class Checkpointing {
 public:
  /// Where something else knows whether the owner of a lease has ended.
  using LifeOfOwner = std::function<Life(const LeaseOwner&)>;
  /// Takes the folder's lease and cleans it, and tells where it has to wait for another run. `facts` is the
  /// manifest without a position.
  static Result<std::unique_ptr<Checkpointing>> open(const CheckpointOptions& options, FileSystem& files,
                                                     const Engine& engine, Manifest facts, LeaseOwner owner,
                                                     Reporter& reporter, LifeOfOwner life = {});

  /// The ranks that have parts of the state, in the order that CheckpointPart has.
  struct Writers {
    Communicator& group;
    int tensor_ranks = 1, stages = 1;
  };
  /// The same on every one of `writers`. Only their rank 0 takes the lease. An Error where another rank does
  /// not see rank 0's folder.
  static Result<std::unique_ptr<Checkpointing>> open_in_parts(const CheckpointOptions& options,
                                                              FileSystem& files, const Engine& engine,
                                                              Manifest facts, LeaseOwner owner,
                                                              Reporter& reporter, const Writers& writers);

  /// The checkpoint to resume from, after reporting every one that was refused.
  Result<std::optional<LoadedCheckpoint>> choose(Reporter& reporter);
  /// Where each write is told.
  void set_trace(Trace& trace) { trace_ = &trace; }
  /// The position at which the run starts; no checkpoint is due there.
  void start_from(const Position& position, const RunShape& run);
  /// In parts, before a step ends: whether this rank is writing, and whether it wants a checkpoint by now.
  bool is_writing() const { return parts_ && parts_->writer.busy(); }
  bool wants_one() const { return parts_ && group_->rank() == 0 && due_by_time(); }
  /// One is due, and nothing is being written: it waits for a step after which ranks have equal weights.
  bool is_due() const { return pending_ && writer_ && !writer_->busy(); }
  /// What is to be done before the engine's state is saved, where others have a part of it.
  void set_before_save(std::function<Result<void>()> before) { before_save_ = std::move(before); }
  /// One is due after the next step, whatever `every` says.
  void want_one() { pending_ = true; }
  /// After each step: writes where one is due or asked for, and tells of those that got done. Where ranks
  /// have weights of their own, it waits for a step after which they have not.
  enum class Weights { equal, own };
  Result<void> after_step(const Engine& engine, const Position& position, const StepTotals& step,
                          Reporter& reporter, Weights weights = Weights::equal);
  /// Starts the write of the run's last state, unless that is saved already.
  Result<void> begin_last(const Engine& engine, const Position& position, Reporter& reporter);
  /// Waits for what is being written.
  Result<void> finish(Reporter& reporter);

 private:
  // Of a checkpoint in parts.
  enum class Phase { none, writing, committing };
  struct Parts {
    PartWriter writer;
    Phase phase = Phase::none;
  };
  Checkpointing(CheckpointOptions options, FileSystem& files, Manifest facts, std::optional<Lease> lease)
      : options_(std::move(options)), files_(files), facts_(std::move(facts)), lease_(std::move(lease)) {}
  static Result<Lease> take(const CheckpointOptions& options, FileSystem& files, LeaseOwner owner,
                            Reporter& reporter, LifeOfOwner life);
  bool due(const Position& position) const;
  bool due_by_time() const;
  Result<void> next_phase(Reporter& reporter);
  Result<void> commit();
  Result<void> finish_parts(Reporter& reporter);
  Error explained(Error error) const;
  Result<void> save(const Engine& engine, const Position& position, const Reporter& reporter);
  Result<void> tell(Result<std::optional<Saved>> ended, Reporter& reporter);
  double epochs_done(const Position& position) const;

  CheckpointOptions options_;
  FileSystem& files_;
  Manifest facts_;
  std::optional<Lease> lease_;  // of the rank that has it
  RunShape run_;
  Position started_;                   // of the newest checkpoint, finished or being written
  std::optional<std::uint64_t> good_;  // step of the newest finished one
  Ticks started_at_{};
  Trace* trace_ = nullptr;
  bool pending_ = false;
  Seconds held_{0};                // how long training has stood still for the one being written
  Communicator* group_ = nullptr;  // in parts
  std::optional<BackgroundWriter> writer_;
  std::optional<Parts> parts_;
  std::function<Result<void>()> before_save_;
};

}  // namespace dlrun::runtime
