// TrainSpec: the `train:` and `checkpoint:` sections of a job file, checked and typed. Strict: an unknown key
// or value is an Error with the place in the user's file. What the design knows but this build does not do
// yet is refused by name, never ignored.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/allreduce/algorithms.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/data_format.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/stages.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/models/layer_list.hpp"
#include "runtime/train/graph_checks.hpp"
#include "runtime/train/init_weights.hpp"
#include "runtime/train/server_placement.hpp"
#include "src/base/clock.hpp"
#include "src/base/interval.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::runtime {

struct OptimizerSpec {
  // sharded: each rank has a part of the optimizer's state (ZeRO stage 1)
  enum class State { replicated, sharded };
  Optimizer optimizer = default_optimizer("sgd");
  double learning_rate = optimizer.traits->learning_rate, weight_decay = 0;
  NoDecay no_decay = {};
  State state = State::replicated;
};

struct ScheduleSpec {
  enum class Decay { none, cosine, step, polynomial, one_cycle };
  enum class Scale { none, linear, square_root };
  Interval warmup;
  Decay decay = Decay::none;
  std::vector<double> at_epochs;                                // decay: step
  double factor = 0.1;                                          // decay: step
  double power = 1, end_rate = 0;                               // decay: polynomial
  double rise = 0.3, first_divisor = 25, last_divisor = 10000;  // decay: one-cycle
  Scale scale = Scale::none;
};

struct ParameterServerSpec {
  // Whether workers of one node add their gradients first, where servers are processes of their own.
  enum class NodeSum { automatic, on, off };
  Placement placement = Placement::greedy;
  std::optional<int> servers = {};  // on ranks: one per rank unless it is set
  int staleness = 0;                // steps; above 0 only with servers of their own
  NodeSum node_sum = NodeSum::automatic;
  int processes = 0;  // servers of their own; the launcher tells
};

struct AllreduceSpec {
  AllreduceChoice choice;
  std::size_t bucket_bytes = 8u << 20;
  CommDtype dtype = CommDtype::f32;  // of gradients in transit
};

/// Communication in fewer steps (train/local_steps.hpp).
struct SyncSpec {
  std::uint64_t every = 2;  // steps
  Interval from = {};       // amount 0: from the first step on
};

struct ShardsSpec {
  std::optional<int> count;  // unset: the ranks of the training's first start
};

/// Of all ranks and all batches of an update; the number of ranks decides what each has of it.
struct GlobalBatch {
  std::int64_t rows = 0;
  std::string where;  // in the job file
};

struct BenchmarkSpec {
  std::uint64_t warmup = 10, steps = 100, repeat = 3;
};

struct TraceSpec {
  std::uint64_t skip = 10, steps = 20;  // skipped ones are those before it
};

// Evaluations within an epoch, on so many batches of all ranks; unset: on all that there is.
struct EvaluateSpec {
  std::uint64_t every = 0;  // steps
  std::optional<std::uint64_t> batches;
};

struct CheckpointOptions {
  std::filesystem::path folder;  // empty: none are written
  std::optional<Interval> every;
  int keep = 3;
};

struct TrainSpec {
  std::string name;                 // of the job
  std::string model;                // a builder's name, or what the user calls the layers
  std::string model_where = {};     // in the job file
  std::optional<LayerList> layers;  // a model of the user's own
  std::string layers_json = {};     // the same, as the job file has it
  std::vector<StageCut> cuts = {};  // where the stages of a pipeline begin; empty: where costs say
  // Of the keys of train that the job file has ("optimizer.state"), where they stand.
  std::map<std::string, std::string> places = {};
  std::optional<InitWeights> init_from;
  std::vector<std::string> freeze;              // patterns of names of parameters that stay as they are
  std::vector<ParameterPattern> patterns = {};  // those of freeze and no-decay, with their places
  DataSpec data;
  Conversion conversion;
  std::string mean_where = {}, std_where = {};  // in the job file; empty where it has none
  Augmentation augmentation;
  DecodeOptions decoding;
  std::int64_t batch = 64;                  // per rank, or per shard where there are shards
  std::optional<GlobalBatch> global_batch;  // decides `batch` once the ranks are known: divide_global_batch()
  int accumulate = 1;                       // batches of each rank or shard per update
  std::optional<ShardsSpec> shards;
  std::uint64_t epochs = 1;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  Precision precision = Precision::f32;
  enum class Device { automatic, cpu, cuda };
  Device device = Device::automatic;
  AllreduceSpec allreduce;
  std::optional<ParameterServerSpec> parameter_server;
  std::optional<SyncSpec> sync;  // unset: the ranks' gradients are summed in each step
  std::uint64_t seed = 1;
  std::optional<BenchmarkSpec> benchmark;
  std::optional<TraceSpec> trace;
  std::optional<double> clip_norm;  // of the gradients of all parameters together
  double label_smoothing = 0;
  std::optional<TargetMeasure> measure;  // where the data has targets
  std::optional<double> mixup;           // alpha
  std::optional<double> ema;  // the decay of an average of the weights, by which the model is evaluated
  std::optional<double> stop_at_accuracy;  // 0..1, of the test set
  std::optional<double> stop_at_loss;
  std::optional<EvaluateSpec> evaluate;  // of language models
  bool mllog = false;                    // lines of MLPerf's log
  CheckpointOptions checkpoint;
  std::vector<std::string> warnings = {};  // of keys under an old name

  /// The place of that key of train in the job file; of the section that it would be in where it is not
  /// there.
  std::string place_of(std::string key) const;
  bool has_target() const { return stop_at_accuracy || stop_at_loss; }
  std::string target_text() const;  // "stop-at.accuracy 0.9"
};

/// `root` is the map {name, train, checkpoint}.
Result<TrainSpec> read_train_spec(const yaml::Node& root);
/// From a file that yaml::to_json_with_sources wrote.
Result<TrainSpec> read_train_spec_file(const std::filesystem::path& path);

/// The batch of each of so many ranks, where the job gives all of them together. An Error where it is no
/// whole number.
Result<void> divide_global_batch(TrainSpec& spec, int ranks);

std::string_view name_of(Precision precision);

}  // namespace dlrun::runtime
