// See vectors.hpp. A value that several operators want as an image is moved once.
#include "runtime/cpu/vectors.hpp"

namespace dlrun::runtime {

namespace {

template <class... T>
bool is_any(const Node& node) {
  return (std::holds_alternative<T>(node.operation) || ...);
}

// Whose output lies as their input does.
bool keeps_layout(const Node& node) {
  return is_any<op::Relu, op::LeakyRelu, op::Tanh, op::Dropout, op::Detach>(node);
}
bool reads_vectors(const Node& node) {
  return keeps_layout(node) || is_any<op::FullyConnected, op::Reshape, op::Flatten>(node) || is_loss(node);
}

// Where a value of the old graph is in the new one.
struct Moved {
  Value value{0};
  bool is_vector = false;
  std::optional<Value> as_image = {};
};

Value image_of(Moved& moved, Graph& into) {
  if (!moved.is_vector) return moved.value;
  if (!moved.as_image) {
    const Shape shape = into.nodes[moved.value.get()].shape;
    moved.as_image = Value(into.nodes.size());
    into.nodes.push_back({"", op::Reshape{}, {moved.value}, shape});
  }
  return *moved.as_image;
}

}  // namespace

Graph as_images(Graph graph) {
  Graph out{.model = std::move(graph.model), .nodes = {}};
  std::vector<Moved> moved;
  for (Node& node : graph.nodes) {
    bool is_vector = is_any<op::FullyConnected>(node);
    for (Value& input : node.inputs) {
      Moved& from = moved[input.get()];
      is_vector = is_vector || (keeps_layout(node) && from.is_vector);
      input = reads_vectors(node) ? from.value : image_of(from, out);
    }
    moved.push_back({Value(out.nodes.size()), is_vector});
    out.nodes.push_back(std::move(node));
  }
  return out;
}

}  // namespace dlrun::runtime
