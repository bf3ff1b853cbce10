// See label_smoothing.hpp.
#include "runtime/graph/label_smoothing.hpp"

namespace dlrun::runtime {

Result<void> smooth_labels(Graph& graph, double smoothing) {
  std::size_t losses = 0;
  for (Node& node : graph.nodes) {
    auto* const loss = std::get_if<op::SoftmaxCrossEntropy>(&node.operation);
    if (loss == nullptr) continue;
    loss->smoothing = static_cast<float>(smoothing);
    ++losses;
  }
  if (losses > 0) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("train.label-smoothing needs a softmax loss, which model '{}' does not have",
                                graph.model),
            .hint = "remove train.label-smoothing"});
}

}  // namespace dlrun::runtime
