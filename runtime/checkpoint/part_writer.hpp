// PartWriter: a rank's part of checkpoints that ranks write together, in a thread while training goes on. A
// checkpoint takes two phases: every rank writes and syncs its files; once all have, which the ranks tell
// each other by other means, the first one commits them. A rank that ends in between leaves no checkpoint.
#pragma once

#include <future>

#include "runtime/checkpoint/writer.hpp"

namespace dlrun::runtime {

class PartWriter {
 public:
  /// `may_write` is asked, in the background, before the first rank commits.
  PartWriter(FileSystem& files, CheckpointPlace place, Snapshot snapshot, const CheckpointPart& part,
             std::function<Result<void>()> may_write = {})
      : files_(files),
        place_(std::move(place)),
        snapshot_(std::move(snapshot)),
        part_(part),
        may_write_(std::move(may_write)) {}

  const CheckpointPart& part() const { return part_; }
  /// Whether something is being written.
  bool busy() const;
  /// Copies this rank's part of the engine's state now and writes it in the background. Not to be called
  /// while busy(), or before the part before it is committed.
  Result<void> start(const Engine& engine, const Manifest& manifest);
  /// Waits for the part, and tells what its files are.
  Result<std::vector<ManifestFile>> written();
  /// The first rank, in the background: makes a checkpoint of the files of all ranks.
  void commit(std::vector<ManifestFile> files);
  /// Waits for the commit. What became a checkpoint, and since when it was written.
  Result<Saved> committed();

 private:
  FileSystem& files_;
  CheckpointPlace place_;
  Snapshot snapshot_;
  CheckpointPart part_;
  std::function<Result<void>()> may_write_;
  Manifest manifest_;  // of the checkpoint under way
  Ticks began_{};
  std::future<Result<std::vector<ManifestFile>>> writing_;  // last: destructors wait while the rest is there
  std::future<Result<Saved>> committing_;
};

}  // namespace dlrun::runtime
