// See label_smoothing.hpp.
#include "runtime/graph/label_smoothing.hpp"

namespace dlrun::runtime {

Result<void> check_softmax_loss(const Graph& graph, std::string_view key) {
  for (const Node& node : graph.nodes)
    if (std::holds_alternative<op::SoftmaxCrossEntropy>(node.operation)) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("{} needs a softmax loss, which model '{}' does not have", key, graph.model),
            .hint = fmt::format("remove {}", key)});
}

Result<void> smooth_labels(Graph& graph, double smoothing) {
  TRY(check_softmax_loss(graph, "train.label-smoothing"));
  for (Node& node : graph.nodes)
    if (auto* const loss = std::get_if<op::SoftmaxCrossEntropy>(&node.operation))
      loss->smoothing = static_cast<float>(smoothing);
  return {};
}

}  // namespace dlrun::runtime
