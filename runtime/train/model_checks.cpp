// See model_checks.hpp.
#include "runtime/train/model_checks.hpp"

#include "runtime/base/counted.hpp"
#include "runtime/graph/fuse.hpp"
#include "runtime/models/models.hpp"
#include "runtime/train/gpu_decoder.hpp"

namespace dlrun::runtime {
namespace {

// The section parallel is the launcher's: errors have the place of the key of train that does not go with it.
class Refusals {
 public:
  Refusals(const TrainSpec& spec, std::string key) : spec_(spec), key_(std::move(key)) {}
  /// `place`: a key of train.
  tl::unexpected<Error> because(const std::string& place, std::string_view what, std::string hint) const {
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("{} is above 1, and {}", key_, what),
                      .where = spec_.place_of(place),
                      .hint = std::move(hint)});
  }
  // What neither tensor groups nor pipelines can.
  Result<void> check_common() const {
    if (spec_.parameter_server)
      return because("parameter-server", "train.parameter-server is set: servers have whole models",
                     fmt::format("remove train.parameter-server or {}", key_));
    if (spec_.sync)
      return because("sync", "train.sync is set: the parts of a model sum in each step",
                     fmt::format("remove train.sync or {}", key_));
    return {};
  }

 private:
  const TrainSpec& spec_;
  std::string key_;
};

Result<void> check_tensor_settings(const TrainSpec& spec) {
  const Refusals refuse(spec, "parallel.tensor");
  TRY(refuse.check_common());
  const OptimizerTraits& optimizer = *spec.optimizer.optimizer.traits;
  if (optimizer.tensor_pass == nullptr) return {};
  return refuse.because(
      "optimizer.name",
      fmt::format("train.optimizer is {}, which needs the norm of each whole tensor", optimizer.name),
      "use sgd, adam or adamw");
}

Result<void> check_pipeline_settings(const TrainSpec& spec) {
  const Refusals refuse(spec, "parallel.pipeline");
  TRY(refuse.check_common());
  if (spec.shards)
    return refuse.because("shards", "train.shards is set: sums of shards have no pipelines so far",
                          "remove train.shards or parallel.pipeline");
  if (spec.benchmark)
    return refuse.because("benchmark",
                          "train.benchmark is set: it times parts of a step that no stage has alone",
                          "remove train.benchmark, and read the rate of a training");
  if (purpose_of(spec.model) == Purpose::generate)
    return refuse.because("model", fmt::format("train.model is {}, a GAN: it has several losses", spec.model),
                          "remove parallel.pipeline, or choose another model");
  return {};
}

Result<void> check_cuts(const TrainSpec& spec, const StageRank& rank) {
  const std::size_t stages = spec.cuts.size() + 1;
  if (stages == 1 || rank.alone() || stages == static_cast<std::size_t>(rank.stages)) return {};
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("train.pipeline.cut makes {} stages, and parallel.pipeline is {}",
                                        stages, rank.stages),
                    .where = spec.place_of("pipeline.cut"),
                    .hint = fmt::format("set parallel.pipeline to {}, or name {}", stages,
                                        counted(rank.stages - 1, "layer"))});
}

// Errors of the passes over a graph.
Result<Graph> at_model(const TrainSpec& spec, Result<Graph> graph) {
  if (graph) return graph;
  Error error = std::move(graph).error();
  if (error.where.empty()) error.where = spec.model_where;
  return fail(std::move(error));
}

// What CPUs can and GPUs cannot yet.
class GpuRefusals {
 public:
  explicit GpuRefusals(const TrainSpec& spec) : spec_(spec) {}
  /// `place`: a key of train.
  tl::unexpected<Error> because(const std::string& place, const std::string& what, std::string hint) const {
    return fail(Error{.kind = ErrorKind::input,
                      .what = what + " on GPUs so far",
                      .where = spec_.place_of(place),
                      .hint = std::move(hint)});
  }
  enum class State { whole, in_parts };
  Result<void> check_divisions(const ModelRank& rank, State state) const {
    if (rank.stage.alone() || rank.tensor.alone()) return {};
    if (rank.tensor.slices())
      return because(
          "device",
          "parallel.pipeline is above 1 and parallel.sequence is on, which is not supported together",
          "set parallel.sequence to off, or train.device to cpu");
    if (state == State::whole) return {};
    return because("optimizer.state",
                   "parallel.pipeline and parallel.tensor are above 1 and train.optimizer.state is sharded, "
                   "which is not supported together",
                   "set train.optimizer.state to replicated, or train.device to cpu");
  }
  /// Of ranks that have parts of weights or of their state, as `key` says.
  Result<void> check_parts(const std::string& key) const {
    if (spec_.shards)
      return because("shards", key + " and train.shards is set, which is not supported together",
                     "remove train.shards, or set train.device to cpu");
    const OptimizerTraits& optimizer = *spec_.optimizer.optimizer.traits;
    if (optimizer.tensor_pass == nullptr) return {};
    return because("optimizer.name",
                   fmt::format("{} and train.optimizer is {}, which needs the norm of each whole tensor: not "
                               "supported",
                               key, optimizer.name),
                   "use sgd, adam or adamw, or set train.device to cpu");
  }

 private:
  const TrainSpec& spec_;
};

}  // namespace

Result<void> check_gpu_settings(const TrainSpec& spec, const ModelRank& rank) {
  const bool in_parts = spec.optimizer.state == OptimizerSpec::State::sharded;
  if (!in_parts && rank.alone()) return {};
  const GpuRefusals refuse(spec);
  TRY(refuse.check_divisions(rank, in_parts ? GpuRefusals::State::in_parts : GpuRefusals::State::whole));
  const std::string key = in_parts              ? "train.optimizer.state is sharded"
                          : rank.tensor.alone() ? "parallel.pipeline is above 1"
                                                : "parallel.tensor is above 1";
  if (in_parts || !rank.tensor.alone()) TRY(refuse.check_parts(key));
  if (spec.allreduce.dtype == CommDtype::f32) return {};
  return refuse.because("allreduce.dtype",
                        fmt::format("{} and train.allreduce.dtype is {}, which is not supported", key,
                                    name_of(spec.allreduce.dtype)),
                        "set train.allreduce.dtype to f32, or train.device to cpu");
}

Result<void> check_model_settings(const TrainSpec& spec, const ModelRank& rank) {
  if (spec.device == TrainSpec::Device::cuda) TRY(check_gpu_settings(spec, rank));
  if (spec.device == TrainSpec::Device::cpu && spec.decoding.by == DecodeOptions::By::device) {
    Error error = needs_gpu();
    error.where = spec.place_of("data.decode");
    return fail(std::move(error));
  }
  if (!rank.tensor.alone()) TRY(check_tensor_settings(spec));
  TRY(check_cuts(spec, rank.stage));
  return rank.stage.alone() ? Result<void>{} : check_pipeline_settings(spec);
}

// What layers say of their division must fit also where no group divides them; so must cuts.
Result<Graph> divided_graph(const TrainSpec& spec, const Graph& whole, const ModelRank& rank) {
  TRY(check_model_settings(spec, rank));
  Graph out = whole;
  if (!rank.tensor.alone() || has_split(whole)) {
    Graph part = TRY(at_model(spec, split_graph(whole, rank.tensor)));
    if (!rank.tensor.alone()) out = std::move(part);
  }
  if (rank.stage.alone() && !spec.cuts.empty()) TRY(places_of_cuts(fuse(out), spec.cuts));
  return rank.stage.alone() ? Result<Graph>(std::move(out))
                            : at_model(spec, cut_graph(out, rank.stage, spec.cuts));
}

}  // namespace dlrun::runtime
