// See lowering.hpp: a node of the graph, a node of the list.
#include "runtime/cuda/lowering.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/cuda/fusion.hpp"
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

namespace {

DlrunCudaActivation form_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return DLRUN_CUDA_NO_ACTIVATION;
    case Activation::relu:
      return DLRUN_CUDA_RELU;
    case Activation::leaky_relu:
      return DLRUN_CUDA_LEAKY_RELU;
    case Activation::tanh:
      return DLRUN_CUDA_TANH;
  }
  return DLRUN_CUDA_NO_ACTIVATION;
}

const char* kind_of(const Operation& operation) {
#define DLRUN_ROW(TYPE, NAME) #NAME,
  static constexpr const char* kKinds[] = {DLRUN_OPERATORS(DLRUN_ROW)};
#undef DLRUN_ROW
  return kKinds[operation.index()];
}

class Lowering {
 public:
  Lowering(const Graph& graph, const EngineOptions& options)
      : graph_(graph), options_(options), reported_(reported_losses(graph)) {}

  Result<CudaPlan> run() {
    const auto read_by = readers(graph_);
    for (std::size_t index = 0; index < graph_.nodes.size(); ++index) {
      TRY(add(graph_.nodes[index]));
      find_gradient(read_by[index]);
    }
    fuse_neighbours(plan_, tensors_, graph_, options_);
    tensors_.place(plan_, options_);
    if (graph_.stage) mark_tied();
    return std::move(plan_);
  }

 private:
  static bool ends_gradients(const Node& node) { return traits_of(node.operation).stops_gradient; }

  // Of the last node, which those nodes read.
  void find_gradient(const std::vector<std::size_t>& read_by) {
    DlrunCudaNode& flat = plan_.nodes.back();
    const Node& node = graph_.nodes[plan_.nodes.size() - 1];
    bool trained = (flat.weight != DLRUN_CUDA_NOWHERE && node.weights != Weights::frozen) ||
                   traits_of(node.operation).asks_gradient;
    for (const Value input : node.inputs)
      trained = trained || (trained_[input.get()] && !ends_gradients(node));
    trained_.push_back(trained);
    const bool asked = std::any_of(read_by.begin(), read_by.end(), [this](std::size_t reader) {
      return !ends_gradients(graph_.nodes[reader]);
    });
    flat.needs_gradient = trained && asked ? 1 : 0;
  }

  Result<void> add(const Node& node) {
    if (node.inputs.size() > DLRUN_CUDA_MAX_INPUTS) return no_form(node, "of so many values");
    const OperatorTraits& traits = traits_of(node.operation);
    plan_.nodes.emplace_back();
    DlrunCudaNode& flat = plan_.nodes.back();
    flat.kind = kind_of(node.operation);
    flat.input_count = node.inputs.size();
    flat.inner = flat.input_inner = DLRUN_CUDA_NOWHERE;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) flat.inputs[i] = node.inputs[i].get();
    set_shapes(flat, node, traits);
    std::visit([&flat](const auto& spec) { set_settings(flat, spec); }, node.operation);
    if (traits.activation != nullptr) {
      const ActivationRule rule = traits.activation(node.operation);
      flat.activation = form_of(rule.activation), flat.slope = rule.slope;
    }
    flat.facts = facts_of(traits, node.operation, flat);
    flat.first_row = options_.rank * options_.batch;
    flat.parts = flat.slices = 1;
    if (node.part) set_part(flat, node);
    if (const RandomRule drawn = random_of(node.operation); drawn.of != Randomness::none) {
      flat.rng_key = plan_.random_uses.size();
      plan_.random_uses.push_back(drawn);
    }
    if (traits.loss != LossKind::none) flat.report = report(node, traits);
    declare(node);
    return {};
  }

  static std::int64_t planes_of(const Shape& shape) { return shape.axes == Axes::volume ? shape.depth : 0; }

  // A fully connected layer is a convolution of one pixel with as many channels as there are inputs.
  void set_shapes(DlrunCudaNode& flat, const Node& node, const OperatorTraits& traits) const {
    Shape from = node.inputs.empty() ? node.shape : graph_.nodes[node.inputs[0].get()].shape;
    if (traits.gives_vector) from = {from.elements(), 1, 1};
    flat.in_channels = from.channels, flat.in_width = from.width;
    flat.in_depth = planes_of(from), flat.in_height = from.depth * from.height;
    flat.channels = node.shape.channels, flat.width = node.shape.width;
    flat.depth = planes_of(node.shape), flat.height = node.shape.depth * node.shape.height;
  }

  // As the CPU's plan has it, a term that all parts would give is the first one's.
  void set_part(DlrunCudaNode& flat, const Node& node) const {
    const NodePart& part = *node.part;
    const bool is_table = part.form == SplitForm::vocabulary;
    if (part.part > 0 && (is_table || part.form == SplitForm::rows)) flat.facts |= DLRUN_CUDA_LEAVES_TERMS;
    if (part.form == SplitForm::follows) flat.parts = part.parts, flat.part = part.part;
    if (part.form == SplitForm::positions) flat.slices = part.parts, flat.slice = part.part;
    if (!is_table) return;
    const std::optional<TensorPart> table = parameters_of(graph_, node).front().of;
    flat.parts = part.parts;
    flat.first_token = table->ranges.front().first, flat.tokens = table->whole.front();
  }

  // Those that several operators have by their names, and all of them as they are.
  template <class Spec>
  static void set_settings(DlrunCudaNode& flat, const Spec& spec) {
    flat.window = flat.window_width = flat.stride = flat.groups = 1;
    if constexpr (requires { spec.kernel; }) flat.window = flat.window_width = spec.kernel;
    if constexpr (requires { spec.window; }) flat.window = flat.window_width = spec.window;
    if constexpr (requires { spec.stride; }) flat.stride = spec.stride;
    if constexpr (requires { spec.padding; }) flat.padding = flat.padding_width = spec.padding;
    if constexpr (requires { spec.kernel_width; })
      flat.window_width = spec.kernel_width, flat.padding_width = spec.padding_width;
    if constexpr (requires { spec.groups; }) flat.groups = spec.groups;
    if constexpr (requires { spec.activation; }) flat.activation = form_of(spec.activation);
    if constexpr (requires { spec.slope; }) flat.slope = spec.slope;
    static_assert(sizeof spec <= sizeof flat.settings && std::is_trivially_copyable_v<Spec>);
    std::memcpy(flat.settings, &spec, sizeof spec);
    flat.settings_bytes = sizeof spec;
  }

  // One that may: its backward reads its output where it does.
  static bool may_activate(const Operation& operation) {
    return std::visit(
        [](const auto& spec) {
          return requires {
            spec.activation;
          };
        },
        operation);
  }

  static unsigned facts_of(const OperatorTraits& traits, const Operation& operation,
                           const DlrunCudaNode& flat) {
    unsigned facts = 0;
    if (traits.backward_reads_input)
      facts |=
          traits.inputs == Inputs::two ? DLRUN_CUDA_BACKWARD_READS_INPUTS : DLRUN_CUDA_BACKWARD_READS_INPUT;
    if (traits.backward_reads_output &&
        (flat.activation != DLRUN_CUDA_NO_ACTIVATION || !may_activate(operation)))
      facts |= DLRUN_CUDA_BACKWARD_READS_OUTPUT;
    if (traits.products != nullptr) facts |= DLRUN_CUDA_MULTIPLIES;
    if (traits.loss != LossKind::none) facts |= DLRUN_CUDA_IS_LOSS;
    const bool is_border = std::holds_alternative<op::StageOutput>(operation);
    if (traits.stops_gradient || is_border) facts |= DLRUN_CUDA_IN_PLACE;
    return facts;
  }

  // Parameters that another stage has, too: a bucket waits for its gradients, and the copy counts there.
  void mark_tied() {
    const std::vector<std::string>& tied = graph_.stage->tied;
    for (std::size_t index = 0; index < plan_.tensors.size(); ++index) {
      const ParameterSpec& of = plan_.layout.parameters()[index];
      plan_.tensors[index].is_copy = of.weights == Weights::tied ? 1 : 0;
      if (std::find(tied.begin(), tied.end(), of.name) == tied.end()) continue;
      const std::size_t offset = plan_.tensors[index].offset;
      for (DlrunCudaBucket& bucket : plan_.buckets)
        if (offset >= bucket.offset && offset < bucket.offset + bucket.length) bucket.waits = 1;
    }
  }

  Result<void> no_form(const Node& node, const char* which) const {
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("model '{}': a {} {} is not supported on GPUs", graph_.model,
                                          operation_name(node.operation), which),
                      .hint = "write device: cpu"});
  }

  DlrunCudaReport report(const Node& node, const OperatorTraits& traits) const {
    if (std::find(reported_.begin(), reported_.end(), last()) == reported_.end())
      return DLRUN_CUDA_UNREPORTED;
    const bool of_generator = traits.of_generator != nullptr && traits.of_generator(node.operation);
    return of_generator ? DLRUN_CUDA_OF_GENERATOR : DLRUN_CUDA_REPORTED;
  }

  std::size_t last() const { return plan_.nodes.size() - 1; }

  // The tensors of the last node, in the order of the fields of a DlrunCudaNode.
  void declare(const Node& node) {
    static constexpr std::array kParameters = {&DlrunCudaNode::weight, &DlrunCudaNode::bias};
    static constexpr std::array kStatistics = {&DlrunCudaNode::running_mean,
                                               &DlrunCudaNode::running_variance};
    for (const auto at : {kParameters, kStatistics})
      for (const auto place : at) plan_.nodes.back().*place = DLRUN_CUDA_NOWHERE;
    const std::vector<ParameterRule> parameters = parameters_of(graph_, node);
    const std::vector<StatisticRule> statistics = statistics_of(graph_, node);
    assert(parameters.size() <= kParameters.size() && statistics.size() <= kStatistics.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ParameterRule& rule = parameters[i];
      tensors_.parameter(last(), node.weights,
                         {.name = node.name + std::string(rule.part),
                          .shape = rule.shape,
                          .bound = rule.bound,
                          .constant = rule.constant,
                          .of = rule.of,
                          .gradient = gradient_of(node)},
                         order_of(rule), kParameters[i]);
      plan_.nodes.back().*kParameters[i] = 0;  // known to be there; its place follows
    }
    for (std::size_t i = 0; i < statistics.size(); ++i)
      plan_.nodes.back().*kStatistics[i] = tensors_.statistic(
          node.weights,
          {node.name + std::string(statistics[i].part), statistics[i].elements, statistics[i].constant});
  }

  static GradientOf gradient_of(const Node& node) {
    const bool sees_slice = node.part && node.part->form == SplitForm::positions;
    return sees_slice ? GradientOf::term : GradientOf::whole;
  }

  // A vector is one filter; filters over volumes have five dimensions.
  static DeviceOrder order_of(const ParameterRule& rule) {
    const std::int64_t numbers =
        std::accumulate(rule.shape.begin(), rule.shape.end(), std::int64_t{1}, std::multiplies<>());
    const std::int64_t filters = rule.shape.size() > 1 ? rule.shape[0] : 1;
    const std::int64_t planes = rule.shape.size() == 5 ? rule.shape[2] : 1;
    return {static_cast<std::size_t>(filters), static_cast<std::size_t>(rule.channels),
            static_cast<std::size_t>(numbers / filters / rule.channels / planes),
            static_cast<std::size_t>(planes)};
  }

  const Graph& graph_;
  const EngineOptions& options_;
  std::vector<std::size_t> reported_;
  CudaPlan plan_;
  CudaTensors tensors_;
  std::vector<bool> trained_;
};

}  // namespace

bool is(const DlrunCudaNode& node, std::string_view kind) {
  return node.kind == kind;
}

Result<CudaPlan> lower(const Graph& graph, const EngineOptions& options) {
  return Lowering(graph, options).run();
}

}  // namespace dlrun::runtime
