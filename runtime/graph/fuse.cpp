// The passes of fuse(): flatten disappears (a fully connected layer reads any shape), an activation joins its
// producer, and max pooling takes over the ReLU before it. relu(max(x)) is max(relu(x)) in value and in
// gradient: where the maximum is positive both send the gradient to the same element, else both send none.
#include "runtime/graph/fuse.hpp"

#include <optional>
#include <utility>

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

template <class T>
bool is(const Node& node) {
  return std::holds_alternative<T>(node.operation);
}

// The activation that a node is, and a leaky one's slope.
std::optional<std::pair<Activation, float>> pure_activation(const Node& node) {
  if (is<op::Relu>(node)) return std::pair(Activation::relu, 0.0F);
  if (is<op::Tanh>(node)) return std::pair(Activation::tanh, 0.0F);
  if (const auto* leaky = std::get_if<op::LeakyRelu>(&node.operation))
    return std::pair(Activation::leaky_relu, leaky->slope);
  return std::nullopt;
}

// A copy without the nodes marked `gone`; whoever read one reads its (first) input instead.
Graph without(const Graph& graph, const std::vector<bool>& gone) {
  Graph result{.model = graph.model, .nodes = {}};
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
    if (pure_activation(kept) || is<op::Dropout>(kept)) kept.shape = result.nodes[kept.inputs[0].get()].shape;
  }
  return result;
}

bool reads_any_shape(const Node& node) {
  return is<op::FullyConnected>(node) || pure_activation(node) || is<op::Dropout>(node);
}

Graph drop_flatten(Graph graph) {
  const auto read_by = readers(graph);
  std::vector<bool> gone(graph.nodes.size(), false);
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    bool needless = is<op::Flatten>(graph.nodes[index]);
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
    const auto joined = pure_activation(graph.nodes[index]);
    if (!joined) continue;
    const std::size_t producer = graph.nodes[index].inputs[0].get();
    Operation& operation = graph.nodes[producer].operation;
    if (read_by[producer].size() != 1 || !takes(operation, joined->first, joined->second)) continue;
    *activation_of(operation) = joined->first;
    gone[index] = true;
  }
  return without(graph, gone);
}

void pool_before_relu(Graph& graph) {
  const auto read_by = readers(graph);
  for (Node& node : graph.nodes) {
    if (!is<op::MaxPool>(node)) continue;
    const std::size_t producer = node.inputs[0].get();
    if (read_by[producer].size() != 1 || is<op::BatchNorm>(graph.nodes[producer])) continue;
    Activation* activation = activation_of(graph.nodes[producer].operation);
    if (activation == nullptr || *activation != Activation::relu) continue;
    *activation = Activation::none;
    std::get<op::MaxPool>(node.operation).activation = Activation::relu;
  }
}

}  // namespace

Graph fuse(Graph graph) {
  Graph fused = join_activations(drop_flatten(std::move(graph)));
  pool_before_relu(fused);
  return fused;
}

}  // namespace dlrun::runtime
