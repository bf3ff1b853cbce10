// Reporter: what a run tells the world: lines on stdout for people, metrics.jsonl and the TensorBoard file,
// progress and results over the control channel. Rank 0 tells everything; other ranks only show their agent
// that they move. Files that cannot be written are an Error; people and agents who do not listen are not.
#pragma once

#include <deque>
#include <optional>

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/train/control.hpp"
#include "runtime/train/report/event_file.hpp"
#include "runtime/train/report/metrics_log.hpp"
#include "runtime/train/report/mllog.hpp"
#include "runtime/train/report/sample_unit.hpp"
#include "runtime/train/step_clock.hpp"
#include "runtime/train/totals.hpp"
#include "runtime/train/train_spec.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {

struct RunLength {
  std::uint64_t steps = 0, epochs = 0;
};

struct StepReport {
  std::uint64_t step = 0;   // steps done
  std::uint64_t epoch = 0;  // that the step was in, from 1
  Totals totals;
  float learning_rate = 0;
  std::uint64_t samples = 0;  // that all ranks took, also those that were dropped
};

// A loss of the task: its names in metrics.jsonl and in TensorBoard.
struct LossColumn {
  const char* key;
  const char* tag;
  double (Totals::*value)() const;
};

// What a task has measured after an epoch.
struct EpochReport {
  Json figures;                                         // of the line in metrics.jsonl
  std::vector<std::pair<std::string, double>> scalars;  // of TensorBoard, by tag
  std::string text;                                     // for people
  std::optional<double> accuracy = {};                  // of the evaluation
};

// What a run ends with.
struct RunResult {
  Json figures;
  std::string text;  // for people; empty: nothing to say
};

/// As metrics have figures: six places.
double rounded_figure(double value);

// Sums over some steps and the time they took.
struct StepWindow {
  Totals totals;
  Seconds time{0};
  void add(const Totals& more, Seconds took) {
    totals.add(more);
    time += took;
  }
  double samples_per_second() const { return time.count() > 0 ? totals.rows / time.count() : 0; }
};

// What a rank keeps of the epoch for the lines that the first rank writes.
struct EpochSoFar {
  double samples = 0;            // that the run has trained
  StepWindow recent, epoch;      // since the last line of metrics; since the epoch (or the run) began
  std::uint64_t epoch_from = 0;  // the first step that `epoch` has, where it has not all of the epoch
};

class Reporter {
 public:
  /// `begin`: when the process started, for the time to the first step.
  Reporter(ControlChannel control, int rank, Ticks begin)
      : control_(std::move(control)), rank_(rank), begin_(begin) {}

  /// The ranks are numbered anew, before any file was opened.
  void set_rank(int rank) { rank_ = rank; }
  /// Opens the files of rank 0 in `folder`.
  Result<void> open_files(const std::filesystem::path& folder, std::uint64_t resumed_at);
  /// This rank is the first from now on, behind step `step`: it tells everything, and writes the files on,
  /// with the last lines once more that the rank before it may not have written.
  Result<void> lead(const std::filesystem::path& folder, std::uint64_t step);
  /// Starts at step `resumed_at`, in the middle of an epoch: what is told of that epoch covers its rest
  /// alone.
  void start_within_epoch(std::uint64_t resumed_at) { epoch_from_ = resumed_at + 1; }
  /// The same where it is known what was trained of the epoch before: all of it is told.
  void continue_epoch(const StepWindow& so_far) { epoch_ = so_far; }
  /// What was trained of the epoch; unset where this run has not all of that.
  std::optional<StepWindow> whole_epoch() const {
    return epoch_from_ > 0 ? std::nullopt : std::optional(epoch_);
  }
  /// What this rank has of the epoch, for one that joins the run.
  EpochSoFar so_far() const { return {samples_, recent_, epoch_, epoch_from_}; }
  void go_on_from(const EpochSoFar& there) {
    samples_ = there.samples;
    recent_ = there.recent;
    epoch_ = there.epoch;
    epoch_from_ = there.epoch_from;
  }
  /// Another rank will be the first: the files are closed.
  void stop_leading();
  void set_length(RunLength length) { length_ = length; }
  /// The losses of the task: one, unless it says otherwise.
  enum class Accuracy { told, none };
  void set_losses(std::span<const LossColumn> losses, Accuracy accuracy = Accuracy::told) {
    losses_ = losses;
    accuracy_ = accuracy;
  }
  /// What rates count; images, unless it is set.
  void set_unit(const SampleUnit& unit);
  /// What tells the agent where the time of this rank's steps goes; it must outlive the reporter's use.
  void set_clock(StepClock& clock) { clock_ = &clock; }
  void phase(std::string_view what);
  /// From now on, rank 0's stdout has the lines of MLPerf's log too.
  void begin_mllog(const MlLogFacts& facts);
  /// Training starts in this epoch, from 1, or goes on behind an evaluation.
  void epoch_begins(std::uint64_t epoch);
  void evaluation_begins(std::uint64_t epoch);
  void ended(MlLog::Status status, std::uint64_t epochs);
  void note(std::string_view line);  // rank 0's stdout
  /// The first Error of writing such a line. A training goes on without them: its files and checkpoints
  /// count.
  const Result<void>& output() const { return output_; }
  /// The time from here to the next step() counts as training.
  void start_clock() { last_step_ = std::chrono::steady_clock::now(); }
  Result<void> step(const StepReport& report);
  /// What was trained since the epoch, or the run, began.
  const Totals& epoch_totals() const { return epoch_.totals; }
  Result<void> epoch(const StepReport& last, const EpochReport& report);
  /// What was measured within an epoch, which goes on.
  Result<void> evaluation(const StepReport& last, const EpochReport& report);
  /// How many shards the training has, and what is trained, as a checksum: ranks that join need both.
  /// `no_joins`: why none can; empty: they can.
  void training(int shards, std::string_view job, std::string_view no_joins);
  /// An elastic run has completed this step after its ranks became others.
  void went_on(std::uint64_t step);
  /// `held`: how much of the time training stood still.
  void saved(std::uint64_t step, Seconds took, Seconds held);
  /// What is trained on: an identity of the data for the run's record.
  void data(std::string_view fingerprint, std::uint64_t samples);
  /// A fact of the run that its result, and so its record, is to hold.
  void keep_for_result(const std::string& name, Json fact) { facts_[name] = std::move(fact); }
  void result(const Position& position, const RunResult& result);
  void benchmark(const Json& figures);
  Requests requests() { return control_.poll(); }
  void close() { control_.flush(Seconds(1)); }

 private:
  void note_mllog(const MlLog::Lines& lines);
  void send_result(Json figures);
  void send_progress(Json line);
  Json line(const StepReport& report, const StepWindow& window) const;
  double rate(const StepWindow& window) const { return window.samples_per_second() * unit_.per_sample; }
  void add_part_of_epoch(Json& line, std::uint64_t last_step) const;
  std::string part_of_epoch(std::uint64_t last_step) const;  // " (steps 404-938)"; empty: all of it
  void end_epoch() { epoch_ = {}, epoch_from_ = 0; }
  Result<void> write_window(const StepReport& report);
  Result<void> write_figures(const StepReport& last, const EpochReport& report);
  Result<void> write(Json line, std::span<const Scalar> scalars);
  // What others than the first rank would have written last.
  struct Line {
    std::uint64_t step;
    Json json;
    std::vector<Scalar> scalars;
  };

  ControlChannel control_;
  int rank_;
  Ticks begin_;
  Json facts_ = Json::object();
  Result<void> output_ = {};
  bool first_step_done_ = false;
  double samples_ = 0;          // that this process's run has trained, of all ranks
  StepClock* clock_ = nullptr;  // none: not told
  std::span<const LossColumn> losses_;
  Accuracy accuracy_ = Accuracy::told;
  SampleUnit unit_;
  std::string rate_tag_ = "train/" + unit_.key();
  RunLength length_;
  std::deque<Line> unwritten_;
  std::optional<MetricsLog> metrics_;
  std::optional<EventFile> events_;
  std::optional<MlLog> mllog_;
  Ticks last_step_{}, last_sent_{};
  StepWindow recent_, epoch_;     // since the last line of metrics; since the epoch (or the run) began
  std::uint64_t epoch_from_ = 0;  // the first step that epoch_ has, where it has not all of the epoch
  bool line_due_ = false;         // of metrics, once there are totals
};

}  // namespace dlrun::runtime
