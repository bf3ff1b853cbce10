// Root mean square normalization (Zhang, Sennrich 2019) over the features of each position.
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& rms_norm_traits() {
  static const OperatorTraits row{
      .name = "RMS norm",
      .layer = {.name = "rms-norm",
                .other_names = {"rmsnorm"},
                .read = [](yaml::Fields& fields, const yaml::Node&) -> Result<Operation> {
                  return Operation(op::RmsNorm{
                      .epsilon = static_cast<float>(TRY(fields.number_or("epsilon", 1e-5, 1e-12, 1)))});
                }},
      .shape = shape_of_sequence,
      .parameters = [](const Operation&, const Shape& from) -> std::vector<ParameterRule> {
        return {{".weight", {from.channels}, from.channels, 0, 1}};
      },
      .by_position = true,
      .backward_reads_input = true};
  return row;
}

}  // namespace dlrun::runtime
