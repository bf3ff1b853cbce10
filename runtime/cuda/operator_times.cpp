// See operator_times.hpp.
#include "runtime/cuda/operator_times.hpp"

namespace dlrun::runtime {

namespace {

// Floating-point operations of a forward pass of one sample.
double operations(const Graph& graph, const Node& node) {
  const auto products = traits_of(node.operation).products;
  if (products == nullptr) return 0;
  return 2.0 *
         static_cast<double>(products(node.operation, graph.nodes[node.inputs[0].get()].shape, node.shape));
}

// Backward makes the gradients of its weights, where they learn, and of its input, where that is wanted.
int passes_back(const CudaPlan& plan, const DlrunCudaNode& node) {
  return (node.learning == DLRUN_CUDA_FROZEN ? 0 : 1) +
         (plan.nodes[node.inputs[0]].needs_gradient != 0 ? 1 : 0);
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
    if (is(node, DLRUN_CUDA_ELIDED)) continue;
    const std::string name =
        fmt::format("{} {}", operation_name(graph.nodes[i].operation), graph.nodes[i].name);
    const double forward = rows * operations(graph, graph.nodes[i]);
    out.push_back(line(name, "forward", milliseconds[2 * i], forward));
    out.push_back(line(name, "backward", milliseconds[2 * i + 1], forward * passes_back(plan, node)));
  }
  const char* const whole[] = {"copy", "update", "step"};
  for (std::size_t i = 0; i < 3; ++i)
    out.push_back(line(whole[i], "", milliseconds[2 * plan.nodes.size() + i], 0));
  return out;
}

}  // namespace dlrun::runtime
