// SwiGLU (Shazeer 2020): one half of a feed-forward layer gates the other.
#include <fmt/format.h>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& swiglu_traits() {
  static const OperatorTraits row{
      .name = "SwiGLU",
      .inputs = Inputs::two,
      .layer = {.name = "swiglu", .read = read_plain<op::SwiGlu>},
      .shape =
          [](Operation&, ShapeContext& in) {
            if (in.inputs[0] != in.inputs[1])
              in.refuse(fmt::format("cannot gate {} by {}", text(in.inputs[1]), text(in.inputs[0])));
            return in.inputs[0];
          },
      .backward_reads_input = true,
      .split = [](const Operation&) { return SplitForm::follows; }};
  return row;
}

}  // namespace dlrun::runtime
