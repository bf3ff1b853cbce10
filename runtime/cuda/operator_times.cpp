// See operator_times.hpp.
#include "runtime/cuda/operator_times.hpp"

namespace dlrun::runtime {

namespace {

// Floating-point operations of a forward pass of one sample. A convolution turned round spreads each number
// of its input, where another gathers each number of its output.
double operations(const DlrunCudaNode& node) {
  std::int64_t products = 0;
  if (node.kind == DLRUN_CUDA_CONVOLUTION)
    products = node.channels * node.height * node.width * (node.in_channels / node.groups);
  if (node.kind == DLRUN_CUDA_TRANSPOSED_CONVOLUTION)
    products = node.in_channels * node.in_height * node.in_width * node.channels;
  return 2.0 * static_cast<double>(products * node.window * node.window_width);
}

// Backward makes the gradients of its weights, where they learn, and of its input, where that is wanted.
double operations_back(const CudaPlan& plan, const DlrunCudaNode& node) {
  const int passes =
      (node.learning == DLRUN_CUDA_FROZEN ? 0 : 1) + (plan.nodes[node.inputs[0]].needs_gradient != 0 ? 1 : 0);
  return operations(node) * passes;
}

OperatorTime line(std::string name, const char* phase, float milliseconds, double operations) {
  return {std::move(name), phase, static_cast<double>(milliseconds) * 1e-3, operations, {}};
}

}  // namespace

std::vector<OperatorTime> operator_times(const CudaPlan& plan, const Graph& graph, std::int64_t batch,
                                         const std::vector<float>& milliseconds) {
  std::vector<OperatorTime> out;
  const auto rows = static_cast<double>(batch);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const DlrunCudaNode& node = plan.nodes[i];
    if (node.kind == DLRUN_CUDA_ELIDED) continue;
    const std::string name =
        fmt::format("{} {}", operation_name(graph.nodes[i].operation), graph.nodes[i].name);
    out.push_back(line(name, "forward", milliseconds[2 * i], rows * operations(node)));
    out.push_back(line(name, "backward", milliseconds[2 * i + 1], rows * operations_back(plan, node)));
  }
  const char* const whole[] = {"copy", "update", "step"};
  for (std::size_t i = 0; i < 3; ++i)
    out.push_back(line(whole[i], "", milliseconds[2 * plan.nodes.size() + i], 0));
  return out;
}

}  // namespace dlrun::runtime
