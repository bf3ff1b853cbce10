// Engine: a model compiled for one batch size, precision and device: every shape, buffer and the order in
// which gradients become final are known before step 1. Parameters, gradients and optimizer state are one
// arena each; a bucket is a slice of the gradient arena, so that an allreduce copies nothing. What an Engine
// does not do: choose data, talk to other ranks, decide when to stop (runtime/train does).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/input_shape.hpp"
#include "runtime/base/tensor_info.hpp"
#include "runtime/base/trace.hpp"
#include "runtime/engine/no_decay.hpp"
#include "runtime/engine/stage_links.hpp"
#include "runtime/engine/tensor_group.hpp"
#include "runtime/optim/optimizer.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

// tf32: f32 numbers, multiplied on a GPU's matrix units with 10 bits of their fraction. A CPU has it not.
enum class Precision { f32, tf32, bf16 };

// A slice of the gradient arena, final after a known point of backward. Buckets are numbered in the order
// they come.
struct Bucket {
  std::size_t offset = 0;  // floats
  std::size_t length = 0;  // floats
};

// Where a parameter's gradient lies in the gradient arena, padding included.
// Of a tensor that all ranks of a tensor group have (term: each has computed a term of it, from its positions
// of the batch), or of a tensor rank's part.
enum class GradientOf { whole, term, part };
struct GradientSlice {
  std::string name;
  std::size_t offset = 0;  // floats
  std::size_t length = 0;  // floats
  GradientOf of = GradientOf::whole;
};

/// Of rows that have targets. Of numbers: sums over the rows of the mean absolute and square error. Of
/// labels that may be several: how many were rightly said to be there, and how many were said and were there
/// together.
struct TargetSums {
  double absolute = 0, squared = 0, found = 0, marked = 0;

  void add(const TargetSums& other) {
    absolute += other.absolute;
    squared += other.squared;
    found += other.found;
    marked += other.marked;
  }
};

/// Seconds of a step on a device that sums gradients over the ranks itself.
struct DeviceTimes {
  double busy = 0;    // until this rank's own gradients were there
  double waited = 0;  // behind that, while the host waited, too, until all ranks' were
};

struct BatchResult {
  double loss_sum = 0;  // summed over the rows that count; of tokens, a row's is the mean of its positions'
  // Rows, or tokens, whose highest score is the label; of several labels of a row, those told rightly.
  std::int64_t correct = 0;
  // Of a GAN: the loss is the discriminator's, `correct` its right answers on real and on made images (two a
  // row), and this the generator's loss.
  double generator_loss_sum = 0;
  TargetSums target_sums = {};
  std::optional<DeviceTimes> device = {};  // where the engine measures them
};

/// In training: a second label of each row, and the weight of the first in the target of a softmax loss.
struct MixedLabels {
  std::span<std::int32_t> labels;
  std::span<float> own_weights;
};

/// An engine whose model is a GAN.
class GanEngine {
 public:
  virtual ~GanEngine() = default;
  /// Fills as many images as a batch has rows, as Engine::input() lies, always of the same noise.
  virtual Result<void> generate(std::span<float> images) = 0;

 protected:
  static Result<void> check_size_of_images(std::size_t given, std::int64_t wanted) {
    if (given == static_cast<std::size_t>(wanted)) return {};
    return fail(ErrorKind::internal, "{} numbers for images that have {}", given, wanted);
  }
};

/// An engine whose model ends in the scores of a vocabulary.
class LanguageEngine {
 public:
  virtual ~LanguageEngine() = default;
  virtual std::int64_t vocabulary() const = 0;
  /// After evaluate_batch: the scores of the token that follows each row's position `position`,
  /// [batch][vocabulary].
  virtual Result<void> next_scores(std::int64_t position, std::span<float> scores) = 0;
};

/// An engine on a device that sums gradients over the ranks beside backward.
class DeviceReducing {
 public:
  virtual ~DeviceReducing() = default;
  /// alone: train_batch leaves this rank's own gradients, so that it can be timed by itself.
  enum class Sums { together, alone };
  virtual void set_sums(Sums sums) = 0;
  /// All tensors become their means over the ranks, which all call it, whatever set_sums() was told: the same
  /// bits on all of them. Only where averages_state(): the sums are of f32 as it is.
  virtual bool averages_state() const = 0;
  virtual Result<void> average_state(int ranks) = 0;
  /// Seconds of the sums of one step by themselves; all ranks call it.
  virtual Result<double> seconds_of_sums() = 0;
};

/// An engine on a device that adds the gradients of several batches up there before an update.
class DeviceAccumulating {
 public:
  virtual ~DeviceAccumulating() = default;
  /// earlier: the next train_batch keeps its gradients on the device, and they are summed over no ranks.
  /// last: the kept ones are added to its own before anything else becomes of these; those of shards in the
  /// order of their tree.
  enum class Batch { last, earlier };
  virtual void set_batch(Batch batch) = 0;
};

/// The running statistics of an engine on a device: all at once, in an order that ranks of one plan share.
class DeviceStatistics {
 public:
  virtual ~DeviceStatistics() = default;
  virtual std::size_t statistic_floats() const = 0;
  virtual Result<void> read_statistics(std::span<float> out) const = 0;
  virtual Result<void> write_statistics(std::span<const float> values) = 0;
};

/// An engine that has a part of the optimizer's state, and updates that part of the parameters alone (ZeRO
/// stage 1: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
/// 2020). apply() is not called then.
class ShardedEngine {
 public:
  virtual ~ShardedEngine() = default;
  /// Of each bucket's gradients, without the spare slots: where each rank's part begins, and the end, in
  /// floats from the bucket's start.
  virtual const std::vector<std::vector<std::size_t>>& borders() const = 0;
  /// The first pass of an optimizer that looks at whole tensors: two sums per parameter, of this rank's part,
  /// to be added over the ranks. Empty where it has none.
  virtual std::vector<double> measure(const UpdateStep& step) = 0;
  /// Updates this rank's part of a bucket's parameters. `sums`: of measure(), over the ranks.
  virtual void update(const UpdateStep& step, std::size_t bucket, std::span<const double> sums) = 0;
  /// All weights, where the gradients lie in theirs; once the others' parts are there, they are told of.
  virtual std::span<float> values() = 0;
  virtual void values_changed() = 0;
  /// Whether it keeps averages, which swap_averages() then puts into this rank's part of the weights.
  virtual bool keeps_averages() const = 0;
  /// Bytes of the optimizer's state here.
  virtual std::size_t state_bytes() const = 0;
};

/// An engine whose weights other processes may update, from its gradients and the optimizer's state that
/// they have. Offsets are those of Engine::gradient_slices().
class ServedEngine {
 public:
  virtual ~ServedEngine() = default;
  /// Memory of the host for all weights, where the gradients lie in theirs; they are in it as they are now.
  virtual Result<std::span<float>> weights() = 0;
  /// What was written there are the weights.
  virtual Result<void> weights_changed() = 0;
  /// Floats of one tensor of state of all parameters (OptimizerTraits::state).
  virtual Result<void> read_state(std::size_t slot, std::size_t offset, std::span<float> out) const = 0;
  virtual Result<void> write_state(std::size_t slot, std::size_t offset, std::span<const float> values) = 0;
};

/// An engine whose model is a stage of a pipeline: in place of train_batch(), whose halves others come
/// between. The stages beside it take part in both, and in evaluate_batch().
class StagedEngine {
 public:
  virtual ~StagedEngine() = default;
  /// `place`: where the values that backward reads are kept until then; unset where backward is the next
  /// call.
  virtual void forward(std::uint64_t step, std::optional<std::size_t> place) = 0;
  /// Of the batch whose forward had this step and place. The result is the last stage's.
  virtual BatchResult backward(std::uint64_t step, std::optional<std::size_t> place,
                               const std::function<void(std::size_t)>& on_bucket) = 0;
  /// Names of parameters that the first and the last stage both have and whose gradients are to be added:
  /// none where the engine adds them itself.
  virtual const std::vector<std::string>& tied() const = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::int64_t batch() const = 0;
  // Rows to fill before a call: float[batch][channels][height][width] and labels 0..classes-1, -1 for a row
  // (of tokens: for each position of it) that must not count (a short last batch in evaluation).
  // They stay as they are until they are filled again; ask anew before each filling.
  virtual std::span<float> input() = 0;
  virtual std::span<std::int32_t> labels() = 0;
  // In place of input() where the data is tokens: int32[batch][positions]. labels() are as many then.
  virtual std::span<std::int32_t> tokens() { return {}; }
  /// The targets of the rows, where the model has a loss over them; a label of 0 is a row that counts then.
  virtual std::span<float> targets() { return {}; }
  /// Empty where EngineOptions::labels are not mixed.
  virtual MixedLabels mixed_labels() { return {}; }
  // Where EngineOptions::pixels were given and the engine takes them: bytes to fill in place of input().
  virtual std::span<std::uint8_t> pixels() { return {}; }
  // An engine on a device calls `work` in each train_batch, while the device computes: rows filled then are
  // the next call's. An engine that computes itself does not.
  virtual void while_waiting(const std::function<void()>& /*work*/) {}

  // Forward and backward of one batch in training mode; `on_bucket(i)` is called as soon as bucket i is
  // final. `step` and the seed given at compile time alone decide dropout, so a resumed run repeats the same
  // bits. The gradient is of the summed loss divided by batch(), also where some rows do not count.
  virtual BatchResult train_batch(std::uint64_t step, const std::function<void(std::size_t)>& on_bucket) = 0;
  /// The next train_batch is of this shard of the global batch: its random numbers are the shard's and not
  /// the rank's, and running statistics follow the first shard alone. An Error where the engine has it not.
  virtual Result<void> set_shard(int /*shard*/) {
    return fail(Error{
        .kind = ErrorKind::unavailable, .what = "this engine has no shards", .hint = "remove train.shards"});
  }
  /// Where each operator of a train_batch is told, and the update; on a GPU they are one graph, and are not.
  virtual void set_trace(Trace& /*trace*/) {}
  // One update of all parameters by EngineOptions::optimizer.
  virtual void apply(const UpdateStep& step) = 0;
  /// Whether apply() limits the norm of the gradients itself, as they are on a device.
  virtual bool clips_norm() const { return false; }
  /// The weights become their averages, and these the weights, until the next call: for evaluations. Only
  /// where EngineOptions::average is set. A ShardedEngine does it in its part; on a device, all ranks call
  /// it.
  virtual void swap_averages() {}
  // Forward in evaluation mode.
  virtual BatchResult evaluate_batch() = 0;
  /// After evaluate_batch, of a model that classifies: what the loss reads, [batch][scores of a row]. Empty
  /// where the engine keeps them elsewhere.
  virtual std::span<const float> scores() { return {}; }
  /// What it does besides where the model is a GAN; null where it is none.
  virtual GanEngine* gan() { return nullptr; }
  /// What it does besides where the model is of a language; null where it is none.
  virtual LanguageEngine* language() { return nullptr; }
  /// What it does besides where train_batch leaves gradients that are summed over all ranks already. Then it
  /// calls no on_bucket, and spare_slots() alone are left to be summed. Null where it leaves the sums to the
  /// caller.
  virtual DeviceReducing* reducing() { return nullptr; }
  /// What it does besides where EngineOptions::accumulate is above 1, or a rank has several shards, and
  /// gradients stay on a device; null where it leaves all of that to the caller.
  virtual DeviceAccumulating* accumulating() { return nullptr; }
  /// Null where its tensors are read as fast one by one.
  virtual DeviceStatistics* device_statistics() { return nullptr; }
  /// What it does in place of train_batch() where its model is a stage; else null.
  virtual StagedEngine* staged() { return nullptr; }
  /// What it leaves to the caller where EngineOptions::state_part is set; else null, as on a device that
  /// divides the work of sums and updates itself.
  virtual ShardedEngine* sharded() { return nullptr; }
  /// Null where the state is divided, or the engine does not know it.
  virtual ServedEngine* served() { return nullptr; }
  /// Bytes of the optimizer's state here, where that is a part of it.
  virtual std::optional<std::size_t> state_part_bytes() {
    if (ShardedEngine* const part = sharded()) return part->state_bytes();
    return std::nullopt;
  }
  // An Error where a device failed in a call before; results and gradients since then mean nothing.
  virtual Result<void> status() const { return {}; }

  virtual std::span<float> gradients() = 0;  // the arena; behind the last gradient lie spare_slots() floats
  virtual std::span<const Bucket> buckets() const = 0;
  // Floats at the arena's end that belong to the last bucket and travel with it: loss, correct, stop votes.
  // train_batch leaves them alone.
  virtual std::span<float> spare_slots() = 0;
  // Without gaps, in the order of the arena; each lies in one bucket. Empty where the engine does not know.
  virtual std::vector<GradientSlice> gradient_slices() const { return {}; }

  // Named state, in plain layout. Sizes must match; an Error names the tensor that does not.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  virtual Result<void> read_tensor(std::size_t index, std::span<float> out) const = 0;
  virtual Result<void> write_tensor(std::size_t index, std::span<const float> values) = 0;

  // A hash of everything ranks must agree on: operators, shapes, arena layout, precision.
  virtual std::uint64_t plan_hash() const = 0;
  // Bytes of all arenas together.
  virtual std::size_t memory_bytes() const = 0;
};

enum class Labels { one, mixed };

/// How a device chooses among algorithms that compute the same: by their time, so that another run may have
/// other last bits, or by the shape of what they compute and the device alone.
enum class AlgorithmsBy { time, shape };

/// Which part of the optimizer's state an engine has.
struct StatePart {
  int rank = 0, ranks = 1;
};

struct EngineOptions {
  std::int64_t batch = 64;
  Precision precision = Precision::f32;
  std::uint64_t seed = 1;                   // initial weights and dropout; equal on all ranks
  int rank = 0;                             // only decorrelates dropout between ranks
  int ranks = 1;                            // more: gradients() must be what the batch gave, also from a GPU
  std::size_t bucket_bytes = 8u << 20;      // a bucket is closed once it holds that much
  std::optional<InputScaling> pixels = {};  // rows may be taken as bytes
  Optimizer optimizer = momentum_sgd(0);
  std::vector<std::string> frozen = {};  // patterns of names of parameters that are not updated; CPUs only
  NoDecay no_decay = {};
  int accumulate = 1;                            // batches per update
  Labels labels = Labels::one;                   // of a row in training
  AlgorithmsBy algorithms = AlgorithmsBy::time;  // shape: of shards
  std::optional<float> average = {};             // the decay of an average of the weights (optim/average.hpp)
  std::optional<StatePart> state_part = {};      // unset: all of the optimizer's state
  TensorGroup* tensor_group = nullptr;           // of a model that is divided; outlives the engine
  StageLinks* stage_links = nullptr;             // of a stage of a pipeline; outlives the engine
  int places = 1;  // of a stage: for how many batches a device keeps values at once; one on CPUs grows
};

}  // namespace dlrun::runtime
