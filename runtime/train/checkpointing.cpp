// See checkpointing.hpp.
#include "runtime/train/checkpointing.hpp"

#include <cmath>

#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

std::string utc_now() {
  return format_utc(SystemClock().now());
}

}  // namespace

Result<std::unique_ptr<Checkpointing>> Checkpointing::open(const CheckpointOptions& options,
                                                           FileSystem& files, const Engine& engine,
                                                           Manifest facts, LeaseOwner owner,
                                                           Reporter& reporter, LifeOfOwner life) {
  TRY(check_writable(files, options.folder));
  Lease lease = TRY(take_lease({.folder = options.folder / ".lease",
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
  Snapshot snapshot = TRY(Snapshot::make(engine));
  return std::unique_ptr<Checkpointing>(
      new Checkpointing(options, files, std::move(facts), std::move(lease), std::move(snapshot)));
}

Checkpointing::Checkpointing(CheckpointOptions options, FileSystem& files, Manifest facts, Lease lease,
                             Snapshot snapshot)
    : options_(std::move(options)),
      files_(files),
      facts_(std::move(facts)),
      lease_(std::move(lease)),
      writer_(files, {options_.folder, options_.keep}, std::move(snapshot),
              [this] { return lease_.check(); }) {}

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
  if (facts_.shards) facts_.shards = run.world;  // those of the checkpoint that it starts from, if any
  started_at_ = std::chrono::steady_clock::now();
}

double Checkpointing::epochs_done(const Position& position) const {
  return static_cast<double>(position.epoch) +
         static_cast<double>(position.seen) / static_cast<double>(run_.samples);
}

bool Checkpointing::due(const Position& position) const {
  if (!options_.every) return false;
  const double amount = options_.every->amount;
  switch (options_.every->unit) {
    case Interval::Unit::steps:
      return position.step % static_cast<std::uint64_t>(amount) == 0;
    case Interval::Unit::epochs:
      return std::floor(epochs_done(position) / amount) > std::floor(epochs_done(started_) / amount);
    case Interval::Unit::time:
      return std::chrono::steady_clock::now() - started_at_ >= Seconds(amount);
  }
  return false;
}

Result<void> Checkpointing::save(const Engine& engine, const Position& position) {
  Manifest manifest = facts_;
  manifest.position = position;
  manifest.written = utc_now();
  const Ticks began = std::chrono::steady_clock::now();
  TRY(writer_.start(engine, std::move(manifest)));
  held_ = std::chrono::steady_clock::now() - began;
  started_ = position;
  started_at_ = std::chrono::steady_clock::now();
  pending_ = false;
  return {};
}

Result<void> Checkpointing::tell(Result<std::optional<Saved>> ended, Reporter& reporter) {
  if (!ended) {
    Error error = std::move(ended).error();
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
    return fail(std::move(error));
  }
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

Result<void> Checkpointing::after_step(const Engine& engine, const Position& position, bool asked,
                                       Reporter& reporter) {
  pending_ = pending_ || asked || due(position);
  TRY(tell(writer_.poll(), reporter));
  // While the one before is still being written, this one waits for a later step.
  return pending_ && !writer_.busy() ? save(engine, position) : Result<void>{};
}

Result<void> Checkpointing::begin_last(const Engine& engine, const Position& position, Reporter& reporter) {
  TRY(finish(reporter));
  if (good_ == position.step) return {};
  return save(engine, position);
}

Result<void> Checkpointing::finish(Reporter& reporter) {
  const Ticks began = std::chrono::steady_clock::now();
  auto ended = writer_.wait();
  held_ += std::chrono::steady_clock::now() - began;
  return tell(std::move(ended), reporter);
}

}  // namespace dlrun::runtime
