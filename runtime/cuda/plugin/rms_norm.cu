// RMS norm: see row_norm.hpp.
#include "runtime/cuda/plugin/engine.hpp"
#include "runtime/cuda/plugin/row_norm.hpp"

namespace dlrun::cuda {

OperatorPtr make_rms_norm(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  return make_row_norm(device, node, index, Centre::zero, settings_of<op::RmsNorm>(node).epsilon);
}

}  // namespace dlrun::cuda
