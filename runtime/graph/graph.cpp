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
                                           "loss",
                                           "transposed convolution",
                                           "leaky relu",
                                           "tanh",
                                           "noise",
                                           "detach",
                                           "sigmoid cross entropy",
                                           "reshape"};
  static_assert(std::size(kNames) == std::variant_size_v<Operation>);
  return kNames[operation.index()];
}

bool is_loss(const Node& node) {
  return std::holds_alternative<op::SoftmaxCrossEntropy>(node.operation) ||
         std::holds_alternative<op::SigmoidCrossEntropy>(node.operation);
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.weights != Weights::own) continue;
    const Shape from = node.inputs.empty() ? Shape{} : graph.nodes[node.inputs[0].get()].shape;
    if (const auto* spec = std::get_if<op::Convolution>(&node.operation))
      sum += spec->filters * (from.channels / spec->groups * spec->kernel * spec->kernel_width +
                              (spec->bias == Bias::learned ? 1 : 0));
    else if (const auto* turned = std::get_if<op::TransposedConvolution>(&node.operation))
      sum += turned->filters *
             (from.channels * turned->kernel * turned->kernel + (turned->bias == Bias::learned ? 1 : 0));
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
  graph_.nodes.push_back({std::move(name), operation, std::move(inputs), shape, weights_});
  if (weights_ != Weights::own) check_shared(graph_.nodes.back());
  return Value(graph_.nodes.size() - 1);
}

// There must be the same layer on the same shape before.
void GraphBuilder::check_shared(const Node& node) {
  if (node.name.empty()) return;
  for (const Node& owner : graph_.nodes)
    if (owner.weights == Weights::own && owner.name == node.name &&
        owner.operation.index() == node.operation.index() && owner.shape == node.shape &&
        shape(owner.inputs[0]) == shape(node.inputs[0]))
      return;
  refuse(fmt::format("no layer {} is there to share weights with", node.name));
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

Value GraphBuilder::transposed_convolution(std::string name, Value in,
                                           const op::TransposedConvolution& spec) {
  const Shape from = shape(in);
  const auto extent = [&](std::int64_t pixels) {
    return (pixels - 1) * spec.stride - 2 * spec.padding + spec.kernel + spec.output_padding;
  };
  Shape to{spec.filters, extent(from.height), extent(from.width)};
  constexpr std::int64_t kExtent = 1 << 14;
  if (to.height < 1 || to.width < 1 || to.height > kExtent || to.width > kExtent) {
    refuse(fmt::format("{} would make an image of {} x {}", name, to.height, to.width));
    to.height = to.width = 1;
  }
  if (spec.output_padding >= spec.stride)
    refuse(fmt::format("{} has an output padding of {}, not less than its stride of {}", name,
                       spec.output_padding, spec.stride));
  return append(std::move(name), spec, {in}, to);
}

Value GraphBuilder::fully_connected(std::string name, Value in, std::int64_t outputs) {
  return fully_connected(std::move(name), in, op::FullyConnected{.outputs = outputs});
}

Value GraphBuilder::fully_connected(std::string name, Value in, const op::FullyConnected& spec) {
  return append(std::move(name), spec, {in}, {spec.outputs, 1, 1});
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

Value GraphBuilder::leaky_relu(Value in, float slope) {
  // The gradient is told from the output's sign, which a slope below 0 would turn.
  if (!(slope >= 0 && slope <= 1))
    refuse(fmt::format("a leaky ReLU's slope must be in [0, 1], not {}", slope));
  return append("", op::LeakyRelu{slope}, {in}, shape(in));
}

Value GraphBuilder::tanh(Value in) {
  return append("", op::Tanh{}, {in}, shape(in));
}

Value GraphBuilder::noise(std::int64_t size) {
  return append("", op::Noise{}, {}, {size, 1, 1});
}

Value GraphBuilder::detach(Value in) {
  return append("", op::Detach{}, {in}, shape(in));
}

Value GraphBuilder::reshape(Value in, const Shape& to) {
  if (!std::holds_alternative<op::FullyConnected>(graph_.nodes[in.get()].operation) ||
      shape(in).elements() != to.elements())
    refuse(fmt::format("cannot see {} as an image of {}", text(shape(in)), text(to)));
  return append("", op::Reshape{}, {in}, to);
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

void GraphBuilder::sigmoid_cross_entropy(Value logit, op::SigmoidCrossEntropy::Target target) {
  if (shape(logit) != Shape{1, 1, 1})
    refuse(fmt::format("the scores are {}, not one logit", text(shape(logit))));
  if (target == op::SigmoidCrossEntropy::Target::labels && input_.classes != 2)
    refuse("one logit tells two classes apart");
  append("", op::SigmoidCrossEntropy{target}, {logit}, {1, 1, 1});
}

Result<Graph> GraphBuilder::finish() && {
  if (error_) return fail(*std::move(error_));
  if (!is_loss(graph_.nodes.back()))
    return fail(ErrorKind::internal, "model '{}' does not end in a loss", graph_.model);
  return std::move(graph_);
}

}  // namespace dlrun::runtime
