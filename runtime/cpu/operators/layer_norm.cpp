// Layer norm: see norm.hpp.
#include "runtime/cpu/operators/norm.hpp"

namespace dlrun::runtime {

OperatorPtr make_operator(Plan& plan, const op::LayerNorm& spec) {
  return std::make_unique<Norm>(
      plan, kernels::NormRule{plan.node().shape.features(), spec.epsilon, kernels::Centre::mean}, spec.bias);
}

}  // namespace dlrun::runtime
