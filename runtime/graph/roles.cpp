// See roles.hpp.
#include "runtime/graph/roles.hpp"

#include <algorithm>

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
    if (random_of(graph.nodes[node].operation).of == Randomness::samples) noise = node;
    if (traits.stops_gradient) images = graph.nodes[node].inputs[0].get();
  }
  if (!noise || !images) return std::nullopt;
  return Generator{*noise, *images};
}

SampleKind kind_of_rows(const Graph& graph) {
  const Operation& first = graph.nodes.front().operation;
  if (const auto* const border = std::get_if<op::StageInput>(&first)) return border->kind;
  const auto* const input = std::get_if<op::Input>(&first);
  return input == nullptr ? SampleKind::image : input->kind;
}

Shape shape_of_rows(const Graph& graph) {
  const auto* const border = std::get_if<op::StageInput>(&graph.nodes.front().operation);
  return border == nullptr ? graph.nodes.front().shape : border->rows;
}

std::size_t masks_before(const Graph& graph, std::size_t node) {
  const auto count =
      std::count_if(graph.nodes.begin(), graph.nodes.begin() + static_cast<std::ptrdiff_t>(node),
                    [](const Node& one) { return random_of(one.operation).of == Randomness::mask; });
  return (graph.stage ? graph.stage->dropouts_before : 0) + static_cast<std::size_t>(count);
}

}  // namespace dlrun::runtime
