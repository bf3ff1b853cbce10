// Trainer: the loop. It takes what others made (engine, ranks, data) and decides nothing but what happens
// between two steps: which samples, which learning rate, when to evaluate, save and stop; what is evaluated
// is its Task's. All ranks take the same decisions at the same step, from sums that all of them see.
#pragma once

#include <functional>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/elastic/elastic_world.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/split.hpp"
#include "runtime/train/benchmark.hpp"
#include "runtime/train/checkpointing.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/local_steps.hpp"
#include "runtime/train/pipeline_links.hpp"
#include "runtime/train/pipeline_schedule.hpp"
#include "runtime/train/report/reporter.hpp"
#include "runtime/train/schedule.hpp"
#include "runtime/train/servers/stale_steps.hpp"
#include "runtime/train/shared_state.hpp"
#include "runtime/train/step_trace.hpp"
#include "runtime/train/task.hpp"

namespace dlrun::runtime {

/// The stages of this rank's pipeline, and what it exchanges with those beside it.
struct PipelineOfRank {
  Communicator& group;
  PipelineLinks& links;
  StageRank rank() const { return {group.rank(), group.size()}; }
};

// left: the others go on without this rank, as somebody has asked.
enum class Ending { finished, stopped, left };

class Trainer {
 public:
  struct Parts {
    const TrainSpec& spec;
    Engine& engine;
    Communicator& comm;  // of the ranks that have other samples
    GradientExchange& gradients;
    const DataParts& data;
    Reporter& reporter;
    Checkpointing* checkpoints;                // where there are any: rank 0's, or all write in parts
    std::function<Requests()> local_requests;  // signals and the like, looked at each step
    std::filesystem::path folder = {};         // rank 0's, for what a GAN generates
    // Rank 0's, of a run that starts from a checkpoint: whether it may be told that nothing is left to train.
    std::function<Result<void>(const std::string& why)> check_finished = {};
    // Of an elastic run: this rank is the first now, and opens the files that rank 0 has. Its checkpoints,
    // where there are any.
    std::function<Result<Checkpointing*>(const Position& position)> take_over = {};
    Communicator* tensor = nullptr;  // of those that have other parts of the model, where there are any
    std::optional<PipelineOfRank> pipeline = {};  // where the model is cut into stages
    StepTrace* trace = nullptr;                   // where steps are traced
    // Of an elastic run: this rank is the first and leaves; its checkpoints are complete.
    std::function<void()> hand_over = {};
    // Of an elastic run: this rank knows where to start, and the others of its world have started before it.
    std::optional<ElasticWorld::Joined> entered = {};
    std::optional<EpochSums> epoch_sums = {};  // of a run that starts within an epoch: what it knows of that
  };
  Trainer(const Parts& parts, const Position& start);

  /// Trains to the end, or to the step at which a stop was asked for on any rank.
  Result<Ending> run();
  /// Takes the steps of a benchmark and prints the figures.
  Result<Ending> run_benchmark(const BenchmarkSpec& benchmark);
  const Position& position() const { return position_; }

 private:
  Result<StepTotals> step();
  Result<StepTotals> local_step();
  Result<StepTotals> stale_step();
  bool wants_barrier();
  void tell_lead();
  std::uint64_t rows_sent_together() const;
  bool differs() const { return (local_ && local_->differs()) || (stale_ && stale_->differs()); }
  Result<void> check_loss(const Totals& totals) const;
  Result<void> check_result(const RunResult& result) const;
  std::string hint_of_divergence() const;
  Result<void> update(double scale, double share = 1);
  StepReport report_of_step(const Totals& totals) const;
  enum class Input { fresh, repeated };
  Shard shard(int number, std::uint64_t seen) const;
  std::uint64_t next_rows() const;
  void take_shards();
  void fill(const Shard& shard);
  Result<StepTotals> forward_backward(Input input);
  Result<void> compute_all(Input input);
  Result<void> compute(int number, Input input);
  Result<void> compute_in_stages(Input input);
  Result<void> forward(const PipelineStep& step, Input input);
  Result<void> backward(const PipelineStep& step);
  Result<std::uint64_t> take_rows(const Shard& rows, Input input);
  std::uint64_t draw_of(int number) const;
  std::function<void(std::size_t)> bucket_sender(int number, Result<void>& sent);
  void store_totals(const BatchResult& result, std::uint64_t rows);
  void begin_trace();
  void announce_ahead();
  void report_dropped();
  void count_left_out(std::uint64_t rows, const Totals& counted);
  void fill_ahead();  // the next step's rows, while a device computes
  Result<void> after_step(const StepTotals& step);
  Result<void> tell_and_save(const StepTotals& step);
  Result<double> clip_factor(double scale) const;
  void advance(std::uint64_t rows);
  bool evaluation_due() const;
  Result<void> evaluate_within_epoch();
  Result<void> end_epoch();
  Result<void> check_some_left() const;
  Result<void> complete_checkpoint();
  Result<Ending> finish();
  Result<Ending> stop();
  Result<void> check_target_at_start();
  void begin_mllog();
  // Where the operation was completed: by this rank with the others, or by others whose state it has now.
  // left: this rank is in the world no more.
  enum class Done { here, elsewhere, left };
  Result<Done> complete(const std::function<Result<void>(SharedState::Attempt)>& operation);
  Result<Done> recover(ElasticWorld::Cause cause);
  Result<Done> enter(ElasticWorld::Joined joined, ElasticWorld::Cause cause);
  Result<void> connect_and_share(const ElasticWorld::Joined& joined);
  void begin_elastic();
  Result<bool> stays();
  Result<void> join();
  void stand_at(const Standing& there);
  void change_world_after(const StepTotals& step);
  Result<Ending> leave();
  Result<Ending> train();
  Result<void> lead(ElasticWorld::Cause cause);
  Result<Totals> evaluate_together(const std::function<Result<Totals>()>& evaluation);
  Result<void> end_together(const std::function<Result<void>()>& last_duties);
  RunLength length() const;
  // For a benchmark: times parts of a step after the training, which leaves no state to train on.
  enum class Probe { repeated_input, compute, communication, alone };
  Result<bool> timed_steps(const BenchmarkSpec& benchmark, Throughput& steps);
  Result<void> take(Probe probe);
  Result<void> exchange_alone();
  Result<void> compute_alone(Input input);
  Result<Seconds> median_of(Probe probe, std::uint64_t steps);
  Result<Seconds> time_alone(std::uint64_t steps);
  Result<BenchmarkFigures> measure_parts(Throughput steps);

  Parts parts_;
  ParameterUpdate update_;
  Split split_;
  ShardsOfRank shards_;   // as evaluations are divided
  ShardsOfRank batches_;  // of an update
  RunShape run_;
  SampleOrder order_;
  Permutation epoch_order_;
  BatchFiller train_filler_;
  std::unique_ptr<Task> task_;
  LearningRate learning_rate_;
  Position position_;
  std::uint64_t first_step_;  // that this run starts from
  // Damaged samples of all ranks that were left out since they were told, and what this run has trained, by
  // now and when it last told.
  double left_out_ = 0;
  std::uint64_t trained_ = 0, trained_when_told_ = 0;
  bool filled_ahead_ = false;
  std::uint64_t filled_ = 0;              // of the rows that were filled last, how many count
  std::vector<std::uint64_t> in_flight_;  // the same of each batch that is under way in the stages
  int computing_ = 0;                     // the batch under way
  // Up to where samples are announced to those who decode them; unset: up to where the run stands.
  struct Announced {
    std::uint64_t epoch, seen;
    int shard;
    Permutation order;
  };
  std::optional<Announced> announced_;
  std::optional<SharedState> state_;  // of an elastic run
  std::optional<LocalSteps> local_;   // where ranks communicate in fewer steps
  std::optional<StaleSteps> stale_;   // where they may be at other steps than each other
  OperationResults results_;
  Requests asked_;                     // of this rank, and not yet told
  bool leads_ = false;                 // it has the files of the run
  bool regrouped_ = false;             // since the last step
  bool left_ = false;                  // the world, for good
  bool joins_ = false;                 // it has not yet taken the others' standing
  std::optional<int> world_to_leave_;  // behind this step: which one, by its generation
  StepReport last_;
  StepClock clock_;
};

}  // namespace dlrun::runtime
