// See roles.hpp.
#include "runtime/graph/roles.hpp"

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

std::vector<std::size_t> reported_losses(const Graph& graph) {
  std::vector<std::size_t> found;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    if (traits_of(graph.nodes[node].operation).loss == LossKind::each) found.push_back(node);
  if (found.empty()) found.push_back(graph.nodes.size() - 1);
  return found;
}

std::optional<Generator> generator_of(const Graph& graph) {
  std::optional<std::size_t> noise, images;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const OperatorTraits& traits = traits_of(graph.nodes[node].operation);
    if (traits.random == Randomness::samples) noise = node;
    if (traits.stops_gradient) images = graph.nodes[node].inputs[0].get();
  }
  if (!noise || !images) return std::nullopt;
  return Generator{*noise, *images};
}

}  // namespace dlrun::runtime
