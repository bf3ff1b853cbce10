// See checkpointing.hpp.
#include "runtime/train/checkpointing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/train/report/epoch_sums.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr const char* kLeaseFile = ".lease";

std::string utc_now() {
  return format_utc(SystemClock().now());
}

}  // namespace

Result<Lease> Checkpointing::take(const CheckpointOptions& options, FileSystem& files, LeaseOwner owner,
                                  Reporter& reporter, LifeOfOwner life) {
  TRY(check_writable(files, options.folder));
  Lease lease = TRY(take_lease({.folder = options.folder / kLeaseFile,
                                .owner = std::move(owner),
                                .what = fmt::format("checkpoint folder {}", options.folder.string()),
                                .hint = "wait for that run to end, or set another checkpoint.dir",
                                .waiting =
                                    [&](const std::string& holder, Seconds wait) {
                                      reporter.note(fmt::format(
                                          "checkpoint folder {} is in use by {}: waiting {} for it to end",
                                          options.folder.string(), holder, format_duration(wait)));
                                    },
                                .life = std::move(life)}));
  TRY(remove_leftovers(files, options.folder));
  return lease;
}

Result<std::unique_ptr<Checkpointing>> Checkpointing::open(const CheckpointOptions& options,
                                                           FileSystem& files, const Engine& engine,
                                                           Manifest facts, LeaseOwner owner,
                                                           Reporter& reporter, LifeOfOwner life) {
  Lease lease = TRY(take(options, files, std::move(owner), reporter, std::move(life)));
  Snapshot snapshot = TRY(Snapshot::make(engine));
  std::unique_ptr<Checkpointing> out(new Checkpointing(options, files, std::move(facts), std::move(lease)));
  out->writer_.emplace(files, CheckpointPlace{options.folder, options.keep}, std::move(snapshot),
                       [lease = &*out->lease_] { return lease->check(); });
  return out;
}

// Ranks look for the lease once rank 0 has it.
Result<std::unique_ptr<Checkpointing>> Checkpointing::open_in_parts(const CheckpointOptions& options,
                                                                    FileSystem& files, const Engine& engine,
                                                                    Manifest facts, LeaseOwner owner,
                                                                    Reporter& reporter,
                                                                    const Writers& writers) {
  Communicator& group = writers.group;
  std::optional<Lease> lease;
  if (group.rank() == 0) lease = TRY(take(options, files, std::move(owner), reporter, {}));
  TRY(group.barrier());
  if (!files.exists(options.folder / kLeaseFile))
    return fail(Error{.kind = ErrorKind::io,
                      .what = fmt::format("rank {} does not see the checkpoint folder {} of rank 0",
                                          group.rank(), options.folder.string()),
                      .hint =
                          "every rank writes its part of a checkpoint: set checkpoint.dir to a folder of a "
                          "file system that all nodes share"});
  const CheckpointPart part{group.rank(), group.size(), writers.tensor_ranks, writers.stages};
  facts.parts = part.parts;
  Snapshot snapshot = TRY(Snapshot::make(engine, pieces_of(engine, part)));
  std::unique_ptr<Checkpointing> out(new Checkpointing(options, files, std::move(facts), std::move(lease)));
  out->group_ = &group;
  const Lease* const held = out->lease_ ? &*out->lease_ : nullptr;
  out->parts_.emplace(Parts{PartWriter(files, {options.folder, options.keep}, std::move(snapshot), part,
                                       [held] { return held->check(); })});
  return out;
}

Result<std::optional<LoadedCheckpoint>> Checkpointing::choose(Reporter& reporter) {
  Choice choice = TRY(choose_checkpoint(files_, options_.folder, facts_.identity));
  TRY(check_choice(choice, options_.folder));
  for (const Refusal& refusal : choice.refused)
    reporter.note(
        fmt::format("checkpoint {} refused: {}", (options_.folder / refusal.name).string(), refusal.reason));
  if (choice.newest) good_ = choice.newest->manifest.position.step;
  return std::move(choice.newest);
}

void Checkpointing::start_from(const Position& position, const RunShape& run) {
  started_ = position;
  run_ = run;
  if (parts_ && position.step > 0) good_ = position.step;  // rank 0 has told the others where to start
  if (facts_.shards) facts_.shards = run.world;  // those of the checkpoint that it starts from, if any
  started_at_ = std::chrono::steady_clock::now();
}

double Checkpointing::epochs_done(const Position& position) const {
  return static_cast<double>(position.epoch) +
         static_cast<double>(position.seen) / static_cast<double>(run_.samples);
}

// In parts, all ranks must say the same: the time is rank 0's, which tells the others.
bool Checkpointing::due(const Position& position) const {
  if (!options_.every) return false;
  const double amount = options_.every->amount;
  switch (options_.every->unit) {
    case Interval::Unit::steps:
      return position.step % static_cast<std::uint64_t>(amount) == 0;
    case Interval::Unit::epochs:
      return std::floor(epochs_done(position) / amount) > std::floor(epochs_done(started_) / amount);
    case Interval::Unit::time:
      return !parts_ && due_by_time();
  }
  return false;
}

bool Checkpointing::due_by_time() const {
  return options_.every && options_.every->unit == Interval::Unit::time && !pending_ &&
         std::chrono::steady_clock::now() - started_at_ >= Seconds(options_.every->amount);
}

Result<void> Checkpointing::save(const Engine& engine, const Position& position, const Reporter& reporter) {
  if (before_save_) TRY(before_save_());
  Manifest manifest = facts_;
  manifest.position = position;
  const auto epoch = position.seen > 0 ? reporter.whole_epoch() : std::nullopt;
  const EpochSums sums = epoch ? numbers_of(*epoch) : EpochSums{};
  // JSON has no infinity, which squares of f32 may be: a manifest with it could not be read.
  const bool are_numbers =
      std::all_of(sums.begin(), sums.end(), [](double sum) { return std::isfinite(sum); });
  if (epoch && are_numbers) manifest.epoch_sums = sums;
  manifest.written = utc_now();
  const Ticks began = std::chrono::steady_clock::now();
  if (parts_) {
    TRY(parts_->writer.start(engine, manifest));
    parts_->phase = Phase::writing;
  } else {
    TRY(writer_->start(engine, std::move(manifest)));
  }
  held_ = std::chrono::steady_clock::now() - began;
  started_ = position;
  started_at_ = std::chrono::steady_clock::now();
  pending_ = false;
  return {};
}

Error Checkpointing::explained(Error error) const {
  if (error.kind == ErrorKind::lost)
    error.kind = ErrorKind::io;  // of the folder, and no node
  else if (error.hint.empty())
    error.hint =
        good_ ? fmt::format(
                    "free some space or set another checkpoint.dir; {} in {} is complete, and the next run "
                    "resumes from it",
                    checkpoint_name(*good_), options_.folder.string())
              : fmt::format("free some space or set another checkpoint.dir; {} has no checkpoint yet",
                            options_.folder.string());
  return error;
}

Result<void> Checkpointing::tell(Result<std::optional<Saved>> ended, Reporter& reporter) {
  if (!ended) return fail(explained(std::move(ended).error()));
  if (!*ended) return {};
  good_ = (*ended)->step;
  if (trace_ != nullptr) {
    const auto took = std::chrono::duration_cast<Ticks::duration>((*ended)->took);
    trace_->add({Trace::Track::checkpoint, checkpoint_name(*good_), "write", (*ended)->began,
                 (*ended)->began + took});
  }
  reporter.saved((*ended)->step, (*ended)->took, held_);
  return {};
}

// What all ranks have written becomes a checkpoint. A rank that could not write ends here.
Result<void> Checkpointing::commit() {
  struct Facts {
    std::array<std::uint64_t, 2> bytes, checksums;
  };
  auto written = parts_->writer.written();
  if (!written) return fail(explained(std::move(written).error()));
  const Facts mine{{(*written)[0].bytes, (*written)[1].bytes},
                   {(*written)[0].checksum, (*written)[1].checksum}};
  std::vector<Facts> all(static_cast<std::size_t>(group_->size()));
  TRY(group_->allgather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
  if (group_->rank() == 0) {
    std::vector<ManifestFile> files;
    for (int part = 0; part < group_->size(); ++part)
      for (std::size_t file = 0; file < 2; ++file) {
        const Facts& of = all[static_cast<std::size_t>(part)];
        files.push_back({state_files_of({part, group_->size()})[file], of.bytes[file], of.checksums[file]});
      }
    parts_->writer.commit(std::move(files));
  }
  parts_->phase = Phase::committing;
  return {};
}

// On all ranks after the same step.
Result<void> Checkpointing::next_phase(Reporter& reporter) {
  if (parts_->phase == Phase::writing) return commit();
  if (parts_->phase == Phase::none) return {};
  parts_->phase = Phase::none;
  good_ = started_.step;
  if (group_->rank() != 0) return {};
  auto saved = parts_->writer.committed();
  if (!saved) return fail(explained(std::move(saved).error()));
  return tell(std::optional<Saved>(*saved), reporter);
}

Result<void> Checkpointing::after_step(const Engine& engine, const Position& position, const StepTotals& step,
                                       Reporter& reporter, Weights weights) {
  pending_ = pending_ || step.requests.save || due(position);
  if (weights == Weights::own) return {};
  // While the one before is still being written, this one waits for a later step.
  if (!parts_) {
    TRY(tell(writer_->poll(), reporter));
    return pending_ && !writer_->busy() ? save(engine, position, reporter) : Result<void>{};
  }
  if (step.writing == 0) TRY(next_phase(reporter));
  return pending_ && parts_->phase == Phase::none ? save(engine, position, reporter) : Result<void>{};
}

Result<void> Checkpointing::begin_last(const Engine& engine, const Position& position, Reporter& reporter) {
  TRY(finish(reporter));
  if (good_ == position.step) return {};
  return save(engine, position, reporter);
}

// Nobody goes on before the checkpoint is one.
Result<void> Checkpointing::finish_parts(Reporter& reporter) {
  if (parts_->phase == Phase::none) return {};
  while (parts_->phase != Phase::none) TRY(next_phase(reporter));
  return group_->barrier();
}

Result<void> Checkpointing::finish(Reporter& reporter) {
  const Ticks began = std::chrono::steady_clock::now();
  if (parts_) return finish_parts(reporter);
  auto ended = writer_->wait();
  held_ += std::chrono::steady_clock::now() - began;
  return tell(std::move(ended), reporter);
}

}  // namespace dlrun::runtime
