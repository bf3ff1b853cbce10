// Layer norm: see row_norm.hpp.
#include "runtime/cuda/plugin/engine.hpp"
#include "runtime/cuda/plugin/row_norm.hpp"

namespace dlrun::cuda {

OperatorPtr make_layer_norm(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  return make_row_norm(device, node, index, Centre::mean, settings_of<op::LayerNorm>(node).epsilon);
}

}  // namespace dlrun::cuda
