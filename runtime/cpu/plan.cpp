// Makes tensors and operators in the order of the forward pass and gives every buffer its span of time.
#include "runtime/cpu/plan.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/graph/operators/traits.hpp"
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

namespace {

bool learns(const Node& node) {
  return node.weights != Weights::frozen && traits_of(node.operation).parameters != nullptr;
}

// Whether the parameters of the node are declared for it.
bool has_weights(const Node& node) {
  return node.weights == Weights::own || node.weights == Weights::tied;
}

bool ends_gradients(const Node& node) {
  return traits_of(node.operation).stops_gradient;
}

// The rule of that part.
template <class Rule>
const Rule& find(const std::vector<Rule>& rules, std::string_view part) {
  const auto at =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.part == part; });
  assert(at != rules.end());
  return *at;
}

}  // namespace

Desc Tensor::gradient_desc() const {
  return with_type(desc, data_type(gradient_precision));
}

Plan::Plan(Graph graph, const EngineOptions& options)
    : graph_(std::move(graph)),
      options_(options),
      engine_(dnnl::engine::kind::cpu, 0),
      layout_(preferred_layout(engine_, options.precision)),
      readers_(readers(graph_)),
      group_calls_(options.tensor_group, options.stage_links) {}

std::vector<OperatorPtr> Plan::make_operators() {
  std::vector<OperatorPtr> made;
  for (index_ = 0; index_ < graph_.nodes.size(); ++index_) {
    make_tensor();
    made.push_back(std::visit([this](const auto& spec) { return make_operator(*this, spec); },
                              graph_.nodes[index_].operation));
  }
  return made;
}

Result<void> Plan::lay_out() {
  std::vector<std::size_t> readers_seen(graph_.nodes.size(), 0);
  for (index_ = 0; index_ < graph_.nodes.size(); ++index_) {
    use(output().value, Pass::forward);
    for (Buffer* gradient : output().gradients) use(gradient, Pass::backward);
    if (!output().masked_by_producer) use(output().value, Pass::backward);
    for (const Value input : node().inputs) {
      const Tensor& read = *tensors_[input.get()];
      use(read.value, Pass::forward);
      if (read.needs_gradient() && !ends_gradients(node()))
        use(read.gradients[readers_seen[input.get()]++], Pass::backward);
    }
  }
  TRY(parameters_.lay_out(options_));
  return arena_.lay_out();
}

const Shape& Plan::input_shape(std::size_t which) const {
  return graph_.nodes[node().inputs[which].get()].shape;
}

bool Plan::is_only_reader(std::size_t which) const {
  return readers_[node().inputs[which].get()].size() == 1;
}

bool Plan::is_restored_for(std::size_t node, Value input) const {
  return tensors_[input.get()]->again != nullptr && readers_[input.get()].back() == node;
}

bool Plan::has_parameters_before(std::size_t index) const {
  const Node& node = graph_.nodes[index];
  if (ends_gradients(node)) return false;
  return learns(node) || traits_of(node.operation).asks_gradient ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [this](Value input) { return tensors_[input.get()]->needs_gradient(); });
}

void Plan::make_tensor() {
  Tensor& tensor = *tensors_.emplace_back(std::make_unique<Tensor>());
  tensor.gradient_precision = options_.precision;
  tensor.value = arena_.add(0);
  if (has_parameters_before(index_))
    for (const std::size_t reader : readers_[index_])
      if (!ends_gradients(graph_.nodes[reader])) tensor.gradients.push_back(arena_.add(0));
  set_layout(tensor, activation_desc(batch(), node().shape, data_type(options_.precision), layout_),
             options_.precision, extents(batch(), node().shape, layout_));
}

void Plan::set_layout(Tensor& tensor, const Desc& desc, Precision precision, const Extents& extents) {
  tensor.desc = desc;
  tensor.precision = precision;
  tensor.extents = extents;
  tensor.elements = desc.get_size() / size_of(data_type(precision));
  tensor.value->bytes = aligned(desc.get_size());
  for (Buffer* gradient : tensor.gradients)
    gradient->bytes = aligned(tensor.elements * size_of(data_type(tensor.gradient_precision)));
}

Buffer* Plan::labels() {
  if (labels_ == nullptr) {
    labels_ = buffer(static_cast<std::size_t>(batch() * labels_per_row()) * sizeof(std::int32_t));
    keep(labels_);
  }
  return labels_;
}

Buffer* Plan::mixed_labels() {
  if (mixed_labels_ == nullptr && options().labels == Labels::mixed) {
    mixed_labels_ = buffer(static_cast<std::size_t>(batch()) * 2 * sizeof(float));
    keep(mixed_labels_);
  }
  return mixed_labels_;
}

Buffer* Plan::targets(std::size_t width) {
  if (targets_ == nullptr) {
    target_count_ = static_cast<std::size_t>(batch()) * width;
    targets_ = buffer(target_count_ * sizeof(float));
    keep(targets_);
  }
  return targets_;
}

std::int64_t Plan::labels_per_row() const {
  return input_kind() == SampleKind::tokens ? shape_of_rows().positions() : 1;
}

SampleKind Plan::input_kind() const {
  return kind_of_rows(graph_);
}

Shape Plan::shape_of_rows() const {
  return runtime::shape_of_rows(graph_);
}

Parameter* Plan::parameter(std::string_view part, const Desc& layout, const std::optional<Desc>& columns) {
  const std::string name = node().name + std::string(part);
  if (!has_weights(node())) return parameters_.find_parameter(name);
  const std::vector<ParameterRule> rules = parameters_of(graph_, node());
  const ParameterRule& rule = find(rules, part);
  return parameters_.declare(Parameter{.name = name,
                                       .shape = rule.shape,
                                       .of = rule.of,
                                       .node = index_,
                                       .bound = rule.bound,
                                       .constant = rule.constant,
                                       .layout = layout,
                                       .columns = columns,
                                       .weights = node().weights,
                                       .gradient_of = has_slice() ? GradientOf::term : GradientOf::whole});
}

Statistic* Plan::statistic(std::string_view part) {
  const std::string name = node().name + std::string(part);
  if (node().weights != Weights::own) return parameters_.find_statistic(name);
  const std::vector<StatisticRule> rules = statistics_of(graph_, node());
  const StatisticRule& rule = find(rules, part);
  return parameters_.declare(Statistic{name, rule.constant, rule.elements, {}});
}

double Plan::operations() const {
  const auto products = traits_of(node().operation).products;
  return 2.0 * static_cast<double>(batch() * products(node().operation, input_shape(), node().shape));
}

Buffer* Plan::first_gradient_of(Parameter* parameter) {
  if (parameter->gradient_start != GradientStart::awaited) return nullptr;
  parameter->gradient_start = GradientStart::written;
  return &parameter->gradient;
}

Buffer* Plan::gradient_of(Parameter* parameter, const Desc& layout) {
  if (has_weights(node())) return &parameter->gradient;
  Buffer* part = scratch(layout.get_size(), Pass::backward);
  if (node().weights == Weights::frozen) return part;  // for primitives that must write it somewhere
  ActivationArena::use(part, time_of(parameter->node, Pass::backward));
  parameters_.add_to_gradient(parameter, part, layout, engine_);
  return part;
}

int Plan::time_of(std::size_t node, Pass pass) const {
  const std::size_t nodes = graph_.nodes.size();
  return static_cast<int>(pass == Pass::forward ? node : 2 * nodes - 1 - node);
}

void Plan::use(Buffer* buffer, Pass pass) {
  ActivationArena::use(buffer, time_of(index_, pass));
}

void Plan::keep(Buffer* buffer) {
  ActivationArena::use(buffer, 0);
  ActivationArena::use(buffer, static_cast<int>(2 * graph_.nodes.size()));
}

Buffer* Plan::scratch(std::size_t bytes, Pass pass) {
  Buffer* buffer = arena_.add(bytes);
  use(buffer, pass);
  return buffer;
}

Source Plan::source(Buffer* buffer, const Desc& has, const Desc& wanted, Pass from) {
  if (has == wanted) return {wanted, buffer};
  Buffer* copy = scratch(wanted.get_size(), from);
  use(copy, Pass::backward);
  const dnnl::reorder::primitive_desc desc(engine_, has, engine_, wanted, attributes());
  return {wanted, copy,
          Call(dnnl::reorder(desc), {{DNNL_ARG_FROM, {has, buffer}}, {DNNL_ARG_TO, {wanted, copy}}})};
}

Call::Argument Plan::scratchpad(const Desc& desc, Pass pass) {
  return {DNNL_ARG_SCRATCHPAD, {desc, scratch(desc.get_size(), pass)}};
}

}  // namespace dlrun::runtime
