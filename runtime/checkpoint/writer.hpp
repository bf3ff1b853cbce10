// Writing checkpoints so that at every moment the newest finished one is sound: into a folder beside, synced,
// then renamed; only then are old ones removed. BackgroundWriter does it in a thread while training goes on.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <optional>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/snapshot.hpp"
#include "src/base/clock.hpp"

namespace dlrun::runtime {

struct CheckpointPlace {
  std::filesystem::path folder;
  int keep = 3;
};

/// Writes one checkpoint; `manifest.files` is filled in here. On an Error no part of it is left and
/// what was there before is untouched.
Result<void> write_checkpoint(FileSystem& files, const std::filesystem::path& folder, Manifest manifest,
                              const std::array<std::span<const std::byte>, 2>& state);

/// The files of one of the ranks that write a checkpoint together: into the unfinished one, synced. On an
/// Error none of them is left.
Result<std::vector<ManifestFile>> write_part(FileSystem& files, const std::filesystem::path& folder,
                                             std::uint64_t step, const CheckpointPart& part,
                                             const std::array<std::span<const std::byte>, 2>& state);
/// Makes a checkpoint of the parts that all ranks have written, which `manifest.files` lists: only now can it
/// be found. On an Error no part of it is left.
Result<void> commit_parts(FileSystem& files, const std::filesystem::path& folder, Manifest manifest);

/// Removes the checkpoints of this training that are older than the `keep` newest sound ones. Damaged and
/// foreign ones are left for a person to look at.
Result<void> prune_checkpoints(FileSystem& files, const CheckpointPlace& place, const Identity& identity);

/// Removes what an interrupted write left; their names, for the log.
Result<std::vector<std::string>> remove_leftovers(FileSystem& files, const std::filesystem::path& folder);

/// Creates the folder and writes, syncs and removes a file there: an Error now rather than at the first
/// checkpoint.
Result<void> check_writable(FileSystem& files, const std::filesystem::path& folder);

struct Saved {
  std::uint64_t step = 0;
  Ticks began{};
  Seconds took{0};
};

class BackgroundWriter {
 public:
  /// `may_write` is asked, in the background, before anything in the folder is touched.
  BackgroundWriter(FileSystem& files, CheckpointPlace place, Snapshot snapshot,
                   std::function<Result<void>()> may_write = {})
      : files_(files),
        place_(std::move(place)),
        snapshot_(std::move(snapshot)),
        may_write_(std::move(may_write)) {}

  bool busy() const;
  /// Copies the engine's state now and writes it in the background. Not to be called while busy().
  Result<void> start(const Engine& engine, Manifest manifest);
  /// What ended since the last call, if anything did. Does not wait.
  Result<std::optional<Saved>> poll();
  /// Waits for the write in progress.
  Result<std::optional<Saved>> wait();

 private:
  Result<Saved> write(const Manifest& manifest);
  FileSystem& files_;
  CheckpointPlace place_;
  Snapshot snapshot_;
  std::function<Result<void>()> may_write_;
  std::future<Result<Saved>> running_;  // last: its destructor waits while the rest is still there
};

}  // namespace dlrun::runtime
