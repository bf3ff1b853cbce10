// GraphBuilder: appends nodes and works out their shapes; the first shape that cannot be is the Error.
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

namespace {

std::string text(const Shape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

}  // namespace

std::vector<std::vector<std::size_t>> readers(const Graph& graph) {
  std::vector<std::vector<std::size_t>> result(graph.nodes.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    for (const Value value : graph.nodes[node].inputs) result[value.get()].push_back(node);
  return result;
}

std::string operation_name(const Operation& operation) {
  static constexpr const char* kNames[] = {
      "input",   "convolution", "fully connected", "max pool", "average pool", "batch norm", "relu",
      "dropout", "add",         "flatten",         "loss"};
  static_assert(std::size(kNames) == std::variant_size_v<Operation>);
  return kNames[operation.index()];
}

GraphBuilder::GraphBuilder(std::string model, const InputShape& input) : input_(input) {
  graph_.model = std::move(model);
  constexpr std::int64_t kExtent = 1 << 14, kElements = 1 << 26, kClasses = 1 << 20;
  const auto within = [](std::int64_t value, std::int64_t high) { return value >= 1 && value <= high; };
  if (!within(input.channels, kExtent) || !within(input.height, kExtent) || !within(input.width, kExtent) ||
      !within(input.classes, kClasses) || input.channels * input.height * input.width > kElements)
    refuse(
        fmt::format("each extent must be between 1 and {}, an image at most {} numbers, classes at most {}",
                    kExtent, kElements, kClasses));
  append("", op::Input{}, {}, {input.channels, input.height, input.width});
}

void GraphBuilder::refuse(std::string what) {
  if (error_) return;
  error_ = Error{
      .kind = ErrorKind::input,
      .what = fmt::format("model '{}' cannot take images of {}x{}x{} (channels x height x width) in "
                          "{} classes: {}",
                          graph_.model, input_.channels, input_.height, input_.width, input_.classes, what),
      .hint = "choose a model for images of this size, or other data"};
}

Value GraphBuilder::append(std::string name, Operation operation, std::vector<Value> inputs, Shape shape) {
  graph_.nodes.push_back({std::move(name), operation, std::move(inputs), shape});
  return Value(graph_.nodes.size() - 1);
}

// The extent that a window leaves of `extent`.
std::int64_t GraphBuilder::windowed(const char* what, std::int64_t extent, std::int64_t window,
                                    std::int64_t stride, std::int64_t padding) {
  if (extent + 2 * padding < window) {
    refuse(fmt::format("{} sees {} pixels, less than its window of {}", what, extent + 2 * padding, window));
    return 1;
  }
  return (extent + 2 * padding - window) / stride + 1;
}

Value GraphBuilder::convolution(std::string name, Value in, const op::Convolution& spec) {
  const Shape from = shape(in);
  const Shape to{spec.filters, windowed(name.c_str(), from.height, spec.kernel, spec.stride, spec.padding),
                 windowed(name.c_str(), from.width, spec.kernel, spec.stride, spec.padding)};
  return append(std::move(name), spec, {in}, to);
}

Value GraphBuilder::fully_connected(std::string name, Value in, std::int64_t outputs) {
  return append(std::move(name), op::FullyConnected{.outputs = outputs}, {in}, {outputs, 1, 1});
}

Value GraphBuilder::max_pool(Value in, const op::MaxPool& spec) {
  const Shape from = shape(in);
  return append("", spec, {in},
                {from.channels, windowed("max pooling", from.height, spec.window, spec.stride, spec.padding),
                 windowed("max pooling", from.width, spec.window, spec.stride, spec.padding)});
}

Value GraphBuilder::global_average_pool(Value in) {
  return append("", op::GlobalAveragePool{}, {in}, {shape(in).channels, 1, 1});
}

Value GraphBuilder::batch_norm(std::string name, Value in, const op::BatchNorm& spec) {
  return append(std::move(name), spec, {in}, shape(in));
}

Value GraphBuilder::relu(Value in) {
  return append("", op::Relu{}, {in}, shape(in));
}

Value GraphBuilder::dropout(Value in, float probability) {
  if (!(probability >= 0 && probability < 1))
    refuse(fmt::format("a dropout probability must be in [0, 1), not {}", probability));
  return append("", op::Dropout{probability}, {in}, shape(in));
}

Value GraphBuilder::add(Value left, Value right) {
  if (shape(left) != shape(right))
    refuse(fmt::format("cannot add {} and {}", text(shape(left)), text(shape(right))));
  return append("", op::Add{}, {left, right}, shape(left));
}

Value GraphBuilder::flatten(Value in) {
  return append("", op::Flatten{}, {in}, {shape(in).elements(), 1, 1});
}

void GraphBuilder::softmax_cross_entropy(Value scores) {
  if (shape(scores) != Shape{input_.classes, 1, 1})
    refuse(fmt::format("the scores are {}, not one a class", text(shape(scores))));
  append("", op::SoftmaxCrossEntropy{}, {scores}, {1, 1, 1});
}

Result<Graph> GraphBuilder::finish() && {
  if (error_) return fail(*std::move(error_));
  if (!std::holds_alternative<op::SoftmaxCrossEntropy>(graph_.nodes.back().operation))
    return fail(ErrorKind::internal, "model '{}' does not end in a loss", graph_.model);
  return std::move(graph_);
}

}  // namespace dlrun::runtime
