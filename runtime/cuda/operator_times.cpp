// See operator_times.hpp. What joined a node is named with it: the joined nodes of the graph lie before it.
#include "runtime/cuda/operator_times.hpp"

namespace dlrun::runtime {

namespace {

class Lines {
 public:
  Lines(const CudaPlan& plan, const Graph& graph, std::int64_t batch, Precision precision)
      : plan_(plan),
        graph_(graph),
        rows_(static_cast<double>(batch)),
        number_size_(precision == Precision::bf16 ? 2 : 4) {}

  OperatorTime forward(std::size_t index, float milliseconds) const {
    const DlrunCudaNode& node = plan_.nodes[index];
    const bool is_loss = has(node, DLRUN_CUDA_IS_LOSS);
    double bytes = numbers(index) + numbers(node.inner);
    for (std::size_t i = 0; i < node.input_count; ++i) bytes += numbers(node.inputs[i]) * (is_loss ? 2 : 1);
    const double passes = is_loss ? 1 + passes_back(node) : 1;
    return line(index, "forward", milliseconds, passes * operations(index), bytes);
  }

  OperatorTime backward(std::size_t index, float milliseconds) const {
    const DlrunCudaNode& node = plan_.nodes[index];
    if (has(node, DLRUN_CUDA_IS_LOSS)) return line(index, "backward", milliseconds, 0, 0);
    double bytes = numbers(index) + numbers(node.inner) + numbers(node.input_inner);
    if (has(node, DLRUN_CUDA_BACKWARD_READS_OUTPUT)) bytes += numbers(index);
    for (std::size_t i = 0; i < node.input_count; ++i) {
      const bool reads = has(node, DLRUN_CUDA_BACKWARD_READS_INPUTS) ||
                         (i == 0 && has(node, DLRUN_CUDA_BACKWARD_READS_INPUT));
      const bool passes =
          i > 0 && has(node, DLRUN_CUDA_MULTIPLIES);  // its gradient lies where this one's does
      if (reads && !passes) bytes += numbers(node.inputs[i]);
      if (plan_.nodes[node.inputs[i]].needs_gradient != 0 && !passes) bytes += numbers(node.inputs[i]);
    }
    const double passes = is(node, "attention") ? 2.5 : passes_back(node);
    return line(index, "backward", milliseconds, passes * operations(index), bytes);
  }

 private:
  static bool has(const DlrunCudaNode& node, unsigned fact) { return (node.facts & fact) != 0; }
  double numbers(std::size_t index) const {
    if (index == DLRUN_CUDA_NOWHERE) return 0;
    const DlrunCudaNode& node = plan_.nodes[index];
    return number_size_ * rows_ * static_cast<double>(node.channels * node.height * node.width);
  }
  // The node of the graph that multiplies: this one, or one that joined it.
  std::size_t product(std::size_t index) const {
    for (std::size_t at = index;; --at) {
      if (traits_of(graph_.nodes[at].operation).products != nullptr) return at;
      if (at == 0 || !is(plan_.nodes[at - 1], DLRUN_CUDA_ELIDED)) return index;
    }
  }
  // Floating-point operations of a forward pass. Of attention, a position reads those before it.
  double operations(std::size_t index) const {
    const DlrunCudaNode& flat = plan_.nodes[index];
    if (is(flat, "attention"))
      return 2.0 * rows_ * static_cast<double>(flat.channels * flat.height * (flat.height + 1));
    const Node& node = graph_.nodes[product(index)];
    const auto products = traits_of(node.operation).products;
    if (products == nullptr) return 0;
    return 2.0 * rows_ *
           static_cast<double>(
               products(node.operation, graph_.nodes[node.inputs[0].get()].shape, node.shape));
  }
  // Backward makes the gradients of its weights, where they learn, and of its input, where that is wanted.
  int passes_back(const DlrunCudaNode& node) const {
    return (node.learning == DLRUN_CUDA_FROZEN ? 0 : 1) +
           (plan_.nodes[node.inputs[0]].needs_gradient != 0 ? 1 : 0);
  }
  OperatorTime line(std::size_t index, const char* phase, float milliseconds, double operations,
                    double bytes) const {
    const Node& node = graph_.nodes[product(index)];
    std::string kind = operation_name(node.operation);
    if (&node != &graph_.nodes[index]) kind += " + " + operation_name(graph_.nodes[index].operation);
    return {.name = kind + " " + node.name,
            .phase = phase,
            .seconds = static_cast<double>(milliseconds) * 1e-3,
            .operations = operations,
            .bytes = bytes};
  }

  const CudaPlan& plan_;
  const Graph& graph_;
  double rows_, number_size_;
};

}  // namespace

std::vector<OperatorTime> operator_times(const CudaPlan& plan, const Graph& graph,
                                         const EngineOptions& options,
                                         const std::vector<float>& milliseconds) {
  const Lines lines(plan, graph, options.batch, options.precision);
  std::vector<OperatorTime> out;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (is(plan.nodes[i], DLRUN_CUDA_ELIDED)) continue;
    out.push_back(lines.forward(i, milliseconds[2 * i]));
    out.push_back(lines.backward(i, milliseconds[2 * i + 1]));
  }
  const char* const whole[] = {"copy", "update", "step"};
  for (std::size_t i = 0; i < 3; ++i)
    out.push_back({.name = whole[i],
                   .phase = "",
                   .seconds = static_cast<double>(milliseconds[2 * plan.nodes.size() + i]) * 1e-3});
  return out;
}

}  // namespace dlrun::runtime
