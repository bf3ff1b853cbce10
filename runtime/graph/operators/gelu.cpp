// GELU (Hendrycks, Gimpel 2016), exact or by tanh, as PyTorch's `approximate` chooses.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

// A word, or the form.
Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  static const std::vector<std::string> forms{"erf", "tanh"};
  if (value.kind == yaml::Kind::scalar && (value.scalar.empty() || value.scalar == "gelu"))
    return Operation(op::Gelu{});
  const std::size_t form = TRY(yaml::as_choice(value, fields.path("gelu"), forms));
  return Operation(op::Gelu{form == 0 ? op::Gelu::Form::erf : op::Gelu::Form::tanh});
}

}  // namespace

const OperatorTraits& gelu_traits() {
  static const OperatorTraits row{.name = "gelu",
                                  .layer = {.name = "gelu", .read = read},
                                  .shape = shape_of_input,
                                  .onnx = by([](const op::Gelu& spec) {
                                    const bool exact = spec.form == op::Gelu::Form::erf;
                                    return OnnxForm{
                                        .type = "Gelu",
                                        .attributes = {{"approximate", std::string(exact ? "none" : "tanh")}},
                                        .opset = 20};
                                  }),
                                  .elementwise = true,
                                  .backward_reads_input = true};
  return row;
}

}  // namespace dlrun::runtime
