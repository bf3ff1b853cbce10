// GraphBuilder: appends nodes and works out their shapes; the first shape that cannot be is the Error.
#include "runtime/graph/graph.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "runtime/base/counted.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/split.hpp"

namespace dlrun::runtime {

std::vector<std::vector<std::size_t>> readers(const Graph& graph) {
  std::vector<std::vector<std::size_t>> result(graph.nodes.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node)
    for (const Value value : graph.nodes[node].inputs) result[value.get()].push_back(node);
  return result;
}

std::string operation_name(const Operation& operation) {
  return std::string(traits_of(operation).name);
}

bool is_loss(const Node& node) {
  return traits_of(node.operation).loss != LossKind::none;
}

std::vector<ParameterRule> parameters_of(const Graph& graph, const Node& node) {
  const auto rule = traits_of(node.operation).parameters;
  if (rule == nullptr) return {};
  if (!node.part) return rule(node.operation, graph.nodes[node.inputs[0].get()].shape);
  std::vector<ParameterRule> out = rule(node.part->whole, node.part->from);
  for (ParameterRule& one : out) take_part(one, *node.part);
  return out;
}

std::vector<StatisticRule> statistics_of(const Graph& graph, const Node& node) {
  const auto rule = traits_of(node.operation).statistics;
  if (rule == nullptr) return {};
  return rule(node.operation, graph.nodes[node.inputs[0].get()].shape);
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.weights != Weights::own) continue;
    for (const ParameterRule& rule : parameters_of(graph, node))
      sum += std::accumulate(rule.shape.begin(), rule.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  return sum;
}

GraphBuilder::GraphBuilder(std::string model, const InputShape& input) : input_(input) {
  graph_.model = std::move(model);
  constexpr std::int64_t kExtent = 1 << 14, kElements = 1 << 26, kClasses = 1 << 20;
  const auto within = [](std::int64_t value, std::int64_t high) { return value >= 1 && value <= high; };
  if (!within(input.channels, kExtent) || !within(input.height, kExtent) || !within(input.width, kExtent) ||
      !within(input.classes, kClasses) || input.depth < 0 || input.depth > kExtent ||
      input.channels * input.height * input.width > kElements || input.numbers() > kElements)
    refuse(
        fmt::format("each extent must be between 1 and {}, an image at most {} numbers, classes at most {}",
                    kExtent, kElements, kClasses));
  apply(op::Input{}, {});
}

namespace {

std::string text(const InputShape& input) {
  if (input.kind == SampleKind::tokens)
    return fmt::format("sequences of {} of a vocabulary of {}", counted(input.height, "token"),
                       input.classes);
  const std::string answers = input.targets > 0 ? fmt::format("with {}", counted(input.targets, "target"))
                                                : fmt::format("in {} classes", input.classes);
  if (input.depth > 0)
    return fmt::format("volumes of {}x{}x{}x{} (channels x depth x height x width) {}", input.channels,
                       input.depth, input.height, input.width, answers);
  return fmt::format("images of {}x{}x{} (channels x height x width) {}", input.channels, input.height,
                     input.width, answers);
}

}  // namespace

void GraphBuilder::refuse(const std::string& what) {
  if (error_) return;
  error_ = Error{.kind = ErrorKind::input,
                 .what = fmt::format("model '{}' cannot take {}: {}", graph_.model, text(input_), what),
                 .hint = input_.kind == SampleKind::tokens
                             ? "choose a model for such sequences, or other data"
                             : "choose a model for images of this size, or other data"};
}

bool GraphBuilder::owns_parameters_of(const Node& owner, const Node& node) const {
  const std::vector<ParameterRule> there = parameters_of(graph_, owner), wanted = parameters_of(graph_, node);
  const auto has = [&](const ParameterRule& rule) {
    return std::any_of(there.begin(), there.end(), [&](const ParameterRule& one) {
      return one.part == rule.part && one.shape == rule.shape;
    });
  };
  return std::all_of(wanted.begin(), wanted.end(), has);
}

Value GraphBuilder::apply(std::string name, const Operation& operation, std::vector<Value> inputs) {
  Node node{std::move(name), operation, std::move(inputs), {}, weights_};
  const OperatorTraits& traits = traits_of(operation);
  ShapeContext context{.name = node.name, .inputs = {}, .data = input_};
  for (const Value value : node.inputs) context.inputs.push_back(shape(value));
  if (!node.inputs.empty())
    context.reads_vector = traits_of(graph_.nodes[node.inputs[0].get()].operation).gives_vector;
  const bool any_shape = traits.takes_volume || traits.elementwise || traits.takes_vector;
  for (const Shape& from : context.inputs)
    if (from.axes == Axes::volume && !any_shape)
      refuse(fmt::format("{} does not take volumes, such as {}", traits.name, text(from)));
  node.shape = traits.shape(node.operation, context);
  for (const std::string& what : context.refusals) refuse(what);
  if (weights_ != Weights::own) check_shared(node);
  graph_.nodes.push_back(std::move(node));
  return Value(graph_.nodes.size() - 1);
}

// There must be a layer before that has all of its parameters: the same one, or an embedding for the loss
// over its vocabulary.
void GraphBuilder::check_shared(const Node& node) {
  if (node.name.empty()) return;
  for (const Node& owner : graph_.nodes)
    if (owner.weights == Weights::own && owner.name == node.name && owns_parameters_of(owner, node)) return;
  refuse(fmt::format("no layer {} is there to share weights with", node.name));
}

Result<Graph> GraphBuilder::finish() && {
  if (error_) return fail(*std::move(error_));
  if (!is_loss(graph_.nodes.back()))
    return fail(ErrorKind::internal, "model '{}' does not end in a loss", graph_.model);
  return std::move(graph_);
}

}  // namespace dlrun::runtime
