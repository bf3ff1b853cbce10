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
  static constexpr const char* kNames[] = {"input",
                                           "convolution",
                                           "fully connected",
                                           "max pool",
                                           "window average pool",
                                           "average pool",
                                           "local response norm",
                                           "batch norm",
                                           "relu",
                                           "dropout",
                                           "add",
                                           "concat",
                                           "flatten",
                                           "loss"};
  static_assert(std::size(kNames) == std::variant_size_v<Operation>);
  return kNames[operation.index()];
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    const Shape from = node.inputs.empty() ? Shape{} : graph.nodes[node.inputs[0].get()].shape;
    if (const auto* spec = std::get_if<op::Convolution>(&node.operation))
      sum += spec->filters * (from.channels / spec->groups * spec->kernel * spec->kernel_width +
                              (spec->bias == Bias::learned ? 1 : 0));
    else if (const auto* full = std::get_if<op::FullyConnected>(&node.operation))
      sum += full->outputs * (from.elements() + 1);
    else if (std::holds_alternative<op::BatchNorm>(node.operation))
      sum += 2 * from.channels;
  }
  return sum;
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
                                    std::int64_t stride, std::int64_t padding, Edge edge) {
  if (extent + 2 * padding < window) {
    refuse(fmt::format("{} sees {} pixels, less than its window of {}", what, extent + 2 * padding, window));
    return 1;
  }
  const std::int64_t room = extent + 2 * padding - window;
  // A window that would begin beyond the image and its near padding sees nothing.
  const bool one_more =
      edge == Edge::kept && room % stride != 0 && (room / stride + 1) * stride < extent + padding;
  return room / stride + 1 + (one_more ? 1 : 0);
}

Value GraphBuilder::convolution(std::string name, Value in, const op::Convolution& spec) {
  const Shape from = shape(in);
  const Shape to{spec.filters, windowed(name.c_str(), from.height, spec.kernel, spec.stride, spec.padding),
                 windowed(name.c_str(), from.width, spec.kernel_width, spec.stride, spec.padding_width)};
  if (spec.groups < 1 || from.channels % spec.groups != 0 || spec.filters % spec.groups != 0)
    refuse(fmt::format("{} cannot divide {} channels and {} filters into {} groups", name, from.channels,
                       spec.filters, spec.groups));
  return append(std::move(name), spec, {in}, to);
}

Value GraphBuilder::fully_connected(std::string name, Value in, std::int64_t outputs) {
  return append(std::move(name), op::FullyConnected{.outputs = outputs}, {in}, {outputs, 1, 1});
}

template <class Spec>
Shape GraphBuilder::pooled(const char* what, Value in, const Spec& spec) {
  const Shape from = shape(in);
  return {from.channels, windowed(what, from.height, spec.window, spec.stride, spec.padding, spec.edge),
          windowed(what, from.width, spec.window, spec.stride, spec.padding, spec.edge)};
}

Value GraphBuilder::max_pool(Value in, const op::MaxPool& spec) {
  return append("", spec, {in}, pooled("max pooling", in, spec));
}

Value GraphBuilder::average_pool(Value in, const op::AveragePool& spec) {
  // Which zeros beyond the edge count is not the same everywhere; nobody needs both at once.
  if (spec.edge == Edge::kept && spec.padding != 0 && spec.counted == Padding::counts)
    refuse("average pooling keeps the edge or counts its padding, not both");
  return append("", spec, {in}, pooled("average pooling", in, spec));
}

Value GraphBuilder::local_response_norm(Value in, const op::LocalResponseNorm& spec) {
  return append("", spec, {in}, shape(in));
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

Value GraphBuilder::concat(std::vector<Value> parts) {
  Shape sum = parts.empty() ? Shape{} : shape(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Shape& part = shape(parts[i]);
    if (part.height != sum.height || part.width != sum.width)
      refuse(fmt::format("cannot put {} behind {}", text(part), text(shape(parts.front()))));
    sum.channels += part.channels;
  }
  if (parts.empty()) refuse("a concatenation of nothing");
  return append("", op::Concat{}, std::move(parts), sum);
}

Value GraphBuilder::flatten(Value in) {
  return append("", op::Flatten{}, {in}, {shape(in).elements(), 1, 1});
}

void GraphBuilder::check_scores(Value scores) {
  if (shape(scores) != Shape{input_.classes, 1, 1})
    refuse(fmt::format("the scores are {}, not one a class", text(shape(scores))));
}

void GraphBuilder::auxiliary_loss(Value scores, float weight) {
  check_scores(scores);
  append("", op::SoftmaxCrossEntropy{.weight = weight}, {scores}, {1, 1, 1});
}

void GraphBuilder::softmax_cross_entropy(Value scores) {
  check_scores(scores);
  append("", op::SoftmaxCrossEntropy{}, {scores}, {1, 1, 1});
}

Result<Graph> GraphBuilder::finish() && {
  if (error_) return fail(*std::move(error_));
  if (!std::holds_alternative<op::SoftmaxCrossEntropy>(graph_.nodes.back().operation))
    return fail(ErrorKind::internal, "model '{}' does not end in a loss", graph_.model);
  return std::move(graph_);
}

}  // namespace dlrun::runtime
