// Checkpointing: rank 0's side of checkpoints in a run: when one is due, that they are written while training
// goes on, and that the last one is finished before the process ends. Other ranks have none: state is equal
// on all of them.
#pragma once

#include <memory>

#include "runtime/checkpoint/writer.hpp"
#include "runtime/train/report/reporter.hpp"
#include "runtime/train/schedule.hpp"
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

  /// The checkpoint to resume from, after reporting every one that was refused.
  Result<std::optional<LoadedCheckpoint>> choose(Reporter& reporter);
  /// Where each write is told.
  void set_trace(Trace& trace) { trace_ = &trace; }
  /// The position at which the run starts; no checkpoint is due there.
  void start_from(const Position& position, const RunShape& run);
  /// After each step: writes where one is due or asked for, and tells of those that got done.
  Result<void> after_step(const Engine& engine, const Position& position, bool asked, Reporter& reporter);
  /// Starts the write of the run's last state, unless that is saved already.
  Result<void> begin_last(const Engine& engine, const Position& position, Reporter& reporter);
  /// Waits for what is being written.
  Result<void> finish(Reporter& reporter);

 private:
  Checkpointing(CheckpointOptions options, FileSystem& files, Manifest facts, Lease lease, Snapshot snapshot);
  bool due(const Position& position) const;
  Result<void> save(const Engine& engine, const Position& position);
  Result<void> tell(Result<std::optional<Saved>> ended, Reporter& reporter);
  double epochs_done(const Position& position) const;

  CheckpointOptions options_;
  FileSystem& files_;
  Manifest facts_;
  Lease lease_;
  RunShape run_;
  Position started_;                   // of the newest checkpoint, finished or being written
  std::optional<std::uint64_t> good_;  // step of the newest finished one
  Ticks started_at_{};
  Trace* trace_ = nullptr;
  bool pending_ = false;
  Seconds held_{0};  // how long training has stood still for the one being written
  BackgroundWriter writer_;
};

}  // namespace dlrun::runtime
