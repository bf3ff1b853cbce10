// Causal attention of many heads (Vaswani et al. 2017), with fewer heads of keys (Ainslie et al. 2023) and
// rotary positions (Su et al. 2021) where the settings say so. With dropout, which keys count nothing is
// drawn for each query and head.
#include <fmt/format.h>

#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Result<Operation> read(yaml::Fields& fields, const yaml::Node& value) {
  op::Attention out;
  out.heads = TRY(yaml::as_integer(value, fields.path("attention"), 1, kMaxOutputs));
  out.key_heads = TRY(fields.integer_or("key-heads", 0, 0, kMaxOutputs));
  out.dropout = static_cast<float>(TRY(fields.number_or("attention-dropout", 0, 0, 0.99)));
  out.rotary_base = static_cast<float>(TRY(fields.number_or("rotary-base", 0, 0, 1e9)));
  return Operation(out);
}

Shape shape(const op::Attention& spec, ShapeContext& in) {
  expect_sequence(in);
  const std::int64_t features = in.inputs[0].features(), parts = spec.heads + 2 * spec.keys();
  if (!(spec.dropout >= 0 && spec.dropout < 1))
    in.refuse(fmt::format("a dropout probability must be in [0, 1), not {}", spec.dropout));
  if (spec.heads % spec.keys() != 0)
    in.refuse(fmt::format("{} heads cannot be divided by {} key-heads", spec.heads, spec.keys()));
  if (features % parts != 0)
    in.refuse(
        fmt::format("{} features cannot be divided into {} heads of queries, {} of keys and {} of values",
                    features, spec.heads, spec.keys(), spec.keys()));
  else if (spec.rotary_base > 0 && spec.width(features) % 2 != 0)
    in.refuse(fmt::format("rotary positions need an even number, and a head has {} features",
                          spec.width(features)));
  return sequence(in.inputs[0].positions(), spec.heads * spec.width(features));
}

// Whole heads, and the keys that serve them.
std::string divide(Operation& operation, const Shape&, const NodePart& part) {
  op::Attention& spec = std::get<op::Attention>(operation);
  if (spec.heads % part.parts != 0)
    return fmt::format("{} heads cannot be divided by {}", spec.heads, part.parts);
  if (spec.keys() % part.parts != 0)
    return fmt::format("{} key-heads cannot be divided by {}", spec.keys(), part.parts);
  spec.key_heads = spec.keys() / part.parts;
  spec.all_heads = spec.total_heads();
  spec.heads /= part.parts;
  spec.first_head += part.part * spec.heads;
  return {};
}

std::vector<std::int64_t> sections(const op::Attention& spec, const Shape& from) {
  const std::int64_t width = spec.width(from.features());
  return {spec.heads * width, spec.keys() * width, spec.keys() * width};
}

}  // namespace

const OperatorTraits& attention_traits() {
  static const OperatorTraits row{
      .name = "attention",
      .layer = {.name = "attention", .other_names = {"self-attention", "mha"}, .read = read},
      .shape = shape_by([](const op::Attention& spec, ShapeContext& in) { return shape(spec, in); }),
      .backward_reads_input = true,
      .backward_reads_output = true,
      .split = [](const Operation&) { return SplitForm::heads; },
      .divide = divide,
      .sections = by([](const op::Attention& spec, const Shape& from) { return sections(spec, from); }),
      .random = by([](const op::Attention& spec) {
        return RandomRule{spec.dropout > 0 ? Randomness::mask : Randomness::none, spec.dropout};
      })};
  return row;
}

}  // namespace dlrun::runtime
