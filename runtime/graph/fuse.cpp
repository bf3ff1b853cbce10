// The passes of fuse(): flatten disappears (a fully connected layer reads any shape), an activation joins its
// producer, and what swaps with a ReLU takes over the one before it. What an operator allows is in its
// traits.
#include "runtime/graph/fuse.hpp"

#include <utility>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

Activation* activation_of(Operation& operation) {
  return std::visit(
      [](auto& spec) -> Activation* {
        if constexpr (requires { spec.activation; })
          return &spec.activation;
        else
          return nullptr;
      },
      operation);
}

// A copy without the nodes marked `gone`; whoever read one reads its (first) input instead.
Graph without(const Graph& graph, const std::vector<bool>& gone) {
  Graph result{.model = graph.model, .nodes = {}, .stage = graph.stage};
  std::vector<Value> moved(graph.nodes.size());
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    const Node& node = graph.nodes[index];
    if (gone[index]) {
      moved[index] = moved[node.inputs[0].get()];
      continue;
    }
    moved[index] = Value(result.nodes.size());
    result.nodes.push_back(node);
    Node& kept = result.nodes.back();
    for (Value& value : kept.inputs) value = moved[value.get()];
    if (traits_of(kept.operation).elementwise) kept.shape = result.nodes[kept.inputs[0].get()].shape;
  }
  return result;
}

bool reads_any_shape(const Node& node) {
  const OperatorTraits& traits = traits_of(node.operation);
  return traits.elementwise || traits.gives_vector;
}

Graph drop_flatten(Graph graph) {
  const auto read_by = readers(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    bool needless = traits_of(graph.nodes[index].operation).flattens;
    for (const std::size_t reader : read_by[index])
      needless = needless && reads_any_shape(graph.nodes[reader]);
    gone[index] = needless;
  }
  return without(graph, gone);
}

// Only convolutions, turned round or not, take more than a ReLU.
bool takes(Operation& operation, Activation activation, float slope) {
  if (activation == Activation::relu) return activation_of(operation) != nullptr;
  return std::visit(
      [slope](auto& spec) {
        if constexpr (requires { spec.slope, spec.activation; }) {
          spec.slope = slope;
          return true;
        }
        return false;
      },
      operation);
}

Graph join_activations(Graph graph) {
  const auto read_by = readers(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    const auto rule = traits_of(graph.nodes[index].operation).activation;
    if (rule == nullptr) continue;
    const ActivationRule joined = rule(graph.nodes[index].operation);
    const std::size_t producer = graph.nodes[index].inputs[0].get();
    Operation& operation = graph.nodes[producer].operation;
    if (read_by[producer].size() != 1 || !takes(operation, joined.activation, joined.slope)) continue;
    *activation_of(operation) = joined.activation;
    gone[index] = true;
  }
  return without(graph, gone);
}

void swap_with_relu(Graph& graph) {
  const auto read_by = readers(graph);
  for (Node& node : graph.nodes) {
    if (!traits_of(node.operation).swaps_with_relu) continue;
    const std::size_t producer = node.inputs[0].get();
    if (read_by[producer].size() != 1 || traits_of(graph.nodes[producer].operation).keeps_relu) continue;
    Activation* activation = activation_of(graph.nodes[producer].operation);
    if (activation == nullptr || *activation != Activation::relu) continue;
    *activation = Activation::none;
    *activation_of(node.operation) = Activation::relu;
  }
}

}  // namespace

Graph fuse(Graph graph) {
  Graph fused = join_activations(drop_flatten(std::move(graph)));
  swap_with_relu(fused);
  return fused;
}

}  // namespace dlrun::runtime
