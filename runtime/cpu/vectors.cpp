// See vectors.hpp. A value that several operators want as an image is moved once.
#include "runtime/cpu/vectors.hpp"

#include <optional>

#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

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
    into.nodes.push_back({"", op::Reshape{shape}, {moved.value}, shape});
  }
  return *moved.as_image;
}

}  // namespace

Graph as_images(Graph graph) {
  Graph out{.model = std::move(graph.model), .nodes = {}, .stage = std::move(graph.stage)};
  std::vector<Moved> moved;
  for (Node& node : graph.nodes) {
    const OperatorTraits& traits = traits_of(node.operation);
    bool is_vector = traits.gives_vector;
    for (Value& input : node.inputs) {
      Moved& from = moved[input.get()];
      is_vector = is_vector || (traits.elementwise && from.is_vector);
      input = traits.elementwise || traits.takes_vector ? from.value : image_of(from, out);
    }
    moved.push_back({Value(out.nodes.size()), is_vector});
    out.nodes.push_back(std::move(node));
  }
  return out;
}

}  // namespace dlrun::runtime
