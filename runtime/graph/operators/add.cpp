// Sum of two values.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& add_traits() {
  static const OperatorTraits row{
      .name = "add",
      .inputs = Inputs::two,
      .layer = {.name = "add",
                .other_names = {"residual", "shortcut", "eltwise"},
                .read = read_plain<op::Add>},
      .shape =
          [](Operation&, ShapeContext& in) {
            const Shape &left = in.inputs[0], &right = in.inputs[1];
            if (left != right) in.refuse(fmt::format("cannot add {} and {}", text(left), text(right)));
            return left;
          },
      .onnx = [](const Operation&) { return OnnxForm{.type = "Add"}; },
      .takes_volume = true,
      .backward_reads_output = true,
      .split = [](const Operation&) { return SplitForm::follows; }};
  return row;
}

}  // namespace dlrun::runtime
