// See tensor_checks.hpp.
#include "runtime/train/tensor_checks.hpp"

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> no_form(std::string_view what, std::string hint) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("parallel.tensor is above 1, and {}", what),
                    .hint = std::move(hint)});
}

}  // namespace

Result<void> check_tensor_settings(const TrainSpec& spec, const TensorRank& rank) {
  if (rank.alone()) return {};
  if (spec.device == TrainSpec::Device::cuda)
    return no_form("train.device is cuda: tensor-parallel training runs on CPUs only so far",
                   "set train.device to cpu, or remove parallel.tensor");
  const OptimizerTraits& optimizer = *spec.optimizer.optimizer.traits;
  if (optimizer.tensor_pass != nullptr)
    return no_form(
        fmt::format("train.optimizer is {}, which needs the norm of each whole tensor", optimizer.name),
        "use sgd, adam or adamw");
  if (spec.optimizer.state == OptimizerSpec::State::sharded)
    return no_form("train.optimizer.state is sharded: the two do not go together so far",
                   "remove parallel.tensor, or set train.optimizer.state to replicated");
  if (spec.sync)
    return no_form("train.sync is set: the parts of a model sum in each step",
                   "remove train.sync or parallel.tensor");
  if (spec.parameter_server)
    return no_form("train.parameter-server is set: servers have whole models",
                   "remove train.parameter-server or parallel.tensor");
  return {};
}

Result<Graph> divided_graph(const TrainSpec& spec, const Graph& whole, const TensorRank& rank) {
  if (rank.alone()) return whole;
  TRY(check_tensor_settings(spec, rank));
  auto out = split_graph(whole, rank);
  if (out) return out;
  Error error = std::move(out).error();
  error.where = spec.model_where;
  return fail(std::move(error));
}

}  // namespace dlrun::runtime
