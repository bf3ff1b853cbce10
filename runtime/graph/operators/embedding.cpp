// Embedding: the features of each token, and of each position where those are learned.
#include <fmt/format.h>

#include "runtime/base/counted.hpp"
#include "runtime/graph/init_bound.hpp"
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::Embedding out;
  out.features = TRY(yaml::as_integer(value, fields.path("embedding"), 1, kMaxOutputs));
  out.vocabulary = TRY(fields.integer_or("vocabulary", 0, 0, kMaxOutputs));
  out.positions = TRY(fields.integer_or("positions", 0, 0, kMaxOutputs));
  return Operation(out);
}

Shape shape(op::Embedding& spec, ShapeContext& in) {
  const std::int64_t length = in.inputs[0].positions();
  if (in.data.kind != SampleKind::tokens || in.inputs[0].channels != 1)
    in.refuse(fmt::format("{} reads tokens", in.name));
  if (spec.vocabulary == 0) spec.vocabulary = in.data.classes;
  if (spec.vocabulary < in.data.classes)
    in.refuse(fmt::format("{} has a vocabulary of {}, and the data of {}", in.name,
                          counted(spec.vocabulary, "token"), in.data.classes));
  if (spec.positions != 0 && spec.positions < length)
    in.refuse(fmt::format("{} has {}, and a sequence has {}", in.name, counted(spec.positions, "position"),
                          length));
  return sequence(length, spec.features);
}

std::vector<ParameterRule> parameters(const op::Embedding& spec) {
  const float bound = init_bound(spec.init_std, spec.features);
  std::vector<ParameterRule> out{{".weight", {spec.vocabulary, spec.features}, spec.features, bound}};
  if (spec.positions != 0)
    out.push_back({".positions", {spec.positions, spec.features}, spec.features, bound});
  return out;
}

}  // namespace

const OperatorTraits& embedding_traits() {
  static const OperatorTraits row{
      .name = "embedding",
      .layer = {.name = "embedding", .other_names = {"token-embedding", "embed"}, .read = read},
      .shape = shape_by([](op::Embedding& spec, ShapeContext& in) { return shape(spec, in); }),
      .parameters = by([](const op::Embedding& spec, const Shape&) { return parameters(spec); }),
      .backward_reads_input = true,
      .split = [](const Operation&) { return SplitForm::vocabulary; },
      .divide = divide_vocabulary<op::Embedding>};
  return row;
}

}  // namespace dlrun::runtime
