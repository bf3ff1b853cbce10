// See roles.hpp.
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

std::vector<std::size_t> reported_losses(const Graph& graph) {
  std::vector<std::size_t> found;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (std::holds_alternative<op::SigmoidCrossEntropy>(graph.nodes[node].operation)) found.push_back(node);
  if (found.empty()) found.push_back(graph.nodes.size() - 1);
  return found;
}

std::optional<Generator> generator_of(const Graph& graph) {
  std::optional<std::size_t> noise, images;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const Node& of = graph.nodes[node];
    if (std::holds_alternative<op::Noise>(of.operation)) noise = node;
    if (std::holds_alternative<op::Detach>(of.operation)) images = of.inputs[0].get();
  }
  if (!noise || !images) return std::nullopt;
  return Generator{*noise, *images};
}

}  // namespace dlrun::runtime
