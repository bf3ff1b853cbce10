// Concatenation: the channels of its inputs, one behind the other.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Shape joined(ShapeContext& in) {
  if (in.inputs.empty()) {
    in.refuse("a concatenation of nothing");
    return {};
  }
  Shape sum = in.inputs[0];
  for (std::size_t i = 1; i < in.inputs.size(); ++i) {
    const Shape& part = in.inputs[i];
    if (part.height != sum.height || part.width != sum.width)
      in.refuse(fmt::format("cannot put {} behind {}", text(part), text(in.inputs[0])));
    sum.channels += part.channels;
  }
  return sum;
}

}  // namespace

const OperatorTraits& concat_traits() {
  static const OperatorTraits row{
      .name = "concat",
      .inputs = Inputs::two_or_more,
      .layer = {.name = "concat", .other_names = {"cat", "concatenate"}, .read = read_plain<op::Concat>},
      .shape = [](Operation&, ShapeContext& in) { return joined(in); },
      .onnx =
          [](const Operation&) {
            return OnnxForm{.type = "Concat", .attributes = {{"axis", std::int64_t{1}}}};
          }};
  return row;
}

}  // namespace dlrun::runtime
