// Batch normalization with a learned scale (weight) and shift (bias), and running statistics for evaluation.
#include "runtime/graph/init_bound.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

std::vector<ParameterRule> parameters(const op::BatchNorm& spec, const Shape& from) {
  const float bound = spec.init_std > 0 ? init_bound(spec.init_std, 1) : 0;
  return {{".weight", {from.channels}, from.channels, bound, 1}, {".bias", {from.channels}, from.channels}};
}

}  // namespace

const OperatorTraits& batch_norm_traits() {
  static const OperatorTraits row{
      .name = "batch norm",
      .layer = {.name = "batch-norm",
                .other_names = {"bn", "batchnorm", "batchnorm2d", "batch-normalization"},
                .read = read_plain<op::BatchNorm>},
      .shape = shape_of_input,
      .parameters = by([](const op::BatchNorm& spec, const Shape& from) { return parameters(spec, from); }),
      .statistics = [](const Operation&, const Shape& from) -> std::vector<StatisticRule> {
        return {{".running_mean", from.channels, 0}, {".running_var", from.channels, 1}};
      },
      .onnx = by([](const op::BatchNorm& spec) {
        return OnnxForm{.type = "BatchNormalization", .attributes = {{"epsilon", spec.epsilon}}};
      }),
      .takes_volume = true,
      .keeps_relu = true,
      .backward_reads_input = true};
  return row;
}

}  // namespace dlrun::runtime
