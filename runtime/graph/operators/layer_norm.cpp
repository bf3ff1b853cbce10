// Layer normalization (Ba, Kiros, Hinton 2016) over the features of each position.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& layer_norm_traits() {
  static const OperatorTraits row{
      .name = "layer norm",
      .layer = {.name = "layer-norm",
                .other_names = {"layernorm", "ln"},
                .read = [](yaml::Fields& fields, const yaml::Node&) -> Result<Operation> {
                  return Operation(op::LayerNorm{
                      .epsilon = static_cast<float>(TRY(fields.number_or("epsilon", 1e-5, 1e-12, 1))),
                      .bias = TRY(fields.bool_or("bias", true)) ? Bias::learned : Bias::none});
                }},
      .shape = shape_of_sequence,
      .parameters = by([](const op::LayerNorm& spec, const Shape& from) {
        std::vector<ParameterRule> out{{".weight", {from.channels}, from.channels, 0, 1}};
        if (spec.bias == Bias::learned) out.push_back({".bias", {from.channels}, from.channels});
        return out;
      }),
      .by_position = true,
      .backward_reads_input = true};
  return row;
}

}  // namespace dlrun::runtime
