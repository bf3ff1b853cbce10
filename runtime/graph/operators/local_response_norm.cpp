// Local response normalization across channels.
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::LocalResponseNorm out;
  out.size = TRY(yaml::as_integer(value, fields.path("local-response-norm"), 1, kMaxWindow));
  out.alpha = static_cast<float>(TRY(fields.number_or("alpha", 1e-4, 0, 1e3)));
  out.beta = static_cast<float>(TRY(fields.number_or("beta", 0.75, 0, 10)));
  out.bias = static_cast<float>(TRY(fields.number_or("k", 1, 1e-6, 1e3)));
  return Operation(out);
}

}  // namespace

const OperatorTraits& local_response_norm_traits() {
  static const OperatorTraits row{
      .name = "local response norm",
      .layer = {.name = "local-response-norm", .other_names = {"lrn", "localresponsenorm"}, .read = read},
      .shape = shape_of_input,
      .onnx = by([](const op::LocalResponseNorm& spec) {
        return OnnxForm{
            .type = "LRN",
            .attributes = {
                {"size", spec.size}, {"alpha", spec.alpha}, {"beta", spec.beta}, {"bias", spec.bias}}};
      }),
      .backward_reads_input = true};
  return row;
}

}  // namespace dlrun::runtime
