// See model_checks.hpp.
#include "runtime/train/model_checks.hpp"

#include "runtime/models/models.hpp"
#include "runtime/train/gpu_decoder.hpp"

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> no_form(std::string_view key, std::string_view what, std::string hint) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("{} is above 1, and {}", key, what),
                    .hint = std::move(hint)});
}

// What neither of the two can.
Result<void> check_common_settings(const TrainSpec& spec, std::string_view key) {
  if (spec.parameter_server)
    return no_form(key, "train.parameter-server is set: servers have whole models",
                   fmt::format("remove train.parameter-server or {}", key));
  if (spec.sync)
    return no_form(key, "train.sync is set: the parts of a model sum in each step",
                   fmt::format("remove train.sync or {}", key));
  return {};
}

Result<void> check_tensor_settings(const TrainSpec& spec) {
  TRY(check_common_settings(spec, "parallel.tensor"));
  const OptimizerTraits& optimizer = *spec.optimizer.optimizer.traits;
  if (optimizer.tensor_pass == nullptr) return {};
  return no_form(
      "parallel.tensor",
      fmt::format("train.optimizer is {}, which needs the norm of each whole tensor", optimizer.name),
      "use sgd, adam or adamw");
}

Result<void> check_pipeline_settings(const TrainSpec& spec) {
  constexpr const char* kKey = "parallel.pipeline";
  TRY(check_common_settings(spec, kKey));
  if (spec.shards)
    return no_form(kKey, "train.shards is set: sums of shards have no pipelines so far",
                   "remove train.shards or parallel.pipeline");
  if (spec.benchmark)
    return no_form(kKey, "train.benchmark is set: it times parts of a step that no stage has alone",
                   "remove train.benchmark, and read the rate of a training");
  if (purpose_of(spec.model) == Purpose::generate)
    return no_form(kKey, fmt::format("train.model is {}, a GAN: it has several losses", spec.model),
                   "remove parallel.pipeline, or choose another model");
  return {};
}

// Errors of the passes over a graph.
Result<Graph> at_model(const TrainSpec& spec, Result<Graph> graph) {
  if (graph) return graph;
  Error error = std::move(graph).error();
  error.where = spec.model_where;
  return fail(std::move(error));
}

}  // namespace

Result<void> check_gpu_settings(const TrainSpec& spec, const ModelRank& rank) {
  const bool in_parts = spec.optimizer.state == OptimizerSpec::State::sharded;
  const auto refuse = [](std::string what, std::string hint) {
    return fail(Error{
        .kind = ErrorKind::input, .what = std::move(what) + " on GPUs so far", .hint = std::move(hint)});
  };
  if (!rank.stage.alone())
    return refuse("parallel.pipeline is above 1, which is not supported",
                  "set train.device to cpu, or remove parallel.pipeline");
  if (!in_parts && rank.tensor.alone()) return {};
  const std::string key =
      in_parts ? "train.optimizer.state is sharded" : std::string("parallel.tensor is above 1");
  if (in_parts && !rank.tensor.alone())
    return refuse("parallel.tensor is above 1 and " + key + ", which is not supported together",
                  "set train.optimizer.state to replicated, or train.device to cpu");
  if (spec.shards)
    return refuse(key + " and train.shards is set, which is not supported together",
                  "remove train.shards, or set train.device to cpu");
  const OptimizerTraits& optimizer = *spec.optimizer.optimizer.traits;
  if (optimizer.tensor_pass != nullptr)
    return refuse(fmt::format("{} and train.optimizer is {}, which needs the norm of each whole tensor: not "
                              "supported",
                              key, optimizer.name),
                  "use sgd, adam or adamw, or set train.device to cpu");
  if (spec.allreduce.dtype != CommDtype::f32)
    return refuse(fmt::format("{} and train.allreduce.dtype is {}, which is not supported", key,
                              name_of(spec.allreduce.dtype)),
                  "set train.allreduce.dtype to f32, or train.device to cpu");
  return {};
}

Result<void> check_model_settings(const TrainSpec& spec, const ModelRank& rank) {
  if (spec.device == TrainSpec::Device::cuda) TRY(check_gpu_settings(spec, rank));
  if (spec.device == TrainSpec::Device::cpu && spec.decoding.by == DecodeOptions::By::device)
    return fail(needs_gpu());
  if (!rank.tensor.alone()) TRY(check_tensor_settings(spec));
  return rank.stage.alone() ? Result<void>{} : check_pipeline_settings(spec);
}

// What layers say of their division must fit also where no group divides them.
Result<Graph> divided_graph(const TrainSpec& spec, const Graph& whole, const ModelRank& rank) {
  TRY(check_model_settings(spec, rank));
  Graph out = whole;
  if (!rank.tensor.alone() || has_split(whole)) {
    Graph part = TRY(at_model(spec, split_graph(whole, rank.tensor)));
    if (!rank.tensor.alone()) out = std::move(part);
  }
  return rank.stage.alone() ? Result<Graph>(std::move(out)) : at_model(spec, cut_graph(out, rank.stage));
}

}  // namespace dlrun::runtime
