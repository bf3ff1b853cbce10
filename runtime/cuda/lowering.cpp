// See flat_plan.hpp: a node of the graph, a node of the list.
#include "runtime/cuda/lowering.hpp"

#include <algorithm>

#include "runtime/cuda/fusion.hpp"
#include "runtime/graph/init_bound.hpp"
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
    join_neighbours(plan_, tensors_, graph_);
    tensors_.place(plan_, options_);
    return std::move(plan_);
  }

 private:
  // Nothing flows back through a detach.
  static bool ends_gradients(const Node& node) { return std::holds_alternative<op::Detach>(node.operation); }

  // Of the last node, which those nodes read.
  void find_gradient(const std::vector<std::size_t>& read_by) {
    DlrunCudaNode& flat = plan_.nodes.back();
    const Node& node = graph_.nodes[plan_.nodes.size() - 1];
    bool trained = flat.weight != DLRUN_CUDA_NOWHERE && node.weights != Weights::frozen;
    for (const Value input : node.inputs)
      trained = trained || (trained_[input.get()] && !ends_gradients(node));
    trained_.push_back(trained);
    const bool asked = std::any_of(read_by.begin(), read_by.end(), [this](std::size_t reader) {
      return !ends_gradients(graph_.nodes[reader]);
    });
    flat.needs_gradient = trained && asked ? 1 : 0;
  }

  Result<void> add(const Node& node) {
    DlrunCudaNode flat{};
    flat.kind = DLRUN_CUDA_INPUT;
    if (node.inputs.size() > DLRUN_CUDA_MOST_INPUTS) return no_form(node, "of so many values");
    flat.input_count = node.inputs.size();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) flat.inputs[i] = node.inputs[i].get();
    const Shape from = node.inputs.empty() ? node.shape : graph_.nodes[node.inputs[0].get()].shape;
    flat.in_channels = from.channels, flat.in_height = from.height, flat.in_width = from.width;
    flat.channels = node.shape.channels, flat.height = node.shape.height, flat.width = node.shape.width;
    flat.weight = flat.bias = flat.running_mean = flat.running_variance = DLRUN_CUDA_NOWHERE;
    plan_.nodes.push_back(flat);
    std::visit([&](const auto& spec) { fill(plan_.nodes.back(), node, from, spec); }, node.operation);
    return {};
  }

  template <class Windowed>
  static void window(DlrunCudaNode& flat, const Windowed& spec, std::int64_t size) {
    flat.window = flat.window_width = size, flat.stride = spec.stride;
    flat.padding = flat.padding_width = spec.padding;
    if constexpr (requires { spec.activation; }) flat.activation = form_of(spec.activation);
    if constexpr (requires { spec.slope; }) flat.slope = spec.slope;
  }

  void fill(DlrunCudaNode&, const Node&, const Shape&, const op::Input&) {}
  void fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::Convolution& spec) {
    flat.kind = DLRUN_CUDA_CONVOLUTION;
    window(flat, spec, spec.kernel);
    flat.window_width = spec.kernel_width, flat.padding_width = spec.padding_width;
    flat.groups = spec.groups;
    const std::int64_t channels = from.channels / spec.groups;
    weights(node, {spec.filters, channels, spec.kernel, spec.kernel_width}, {channels, spec.deviation},
            spec.bias);
  }
  // The weights are those of the convolution that it turns round, from the output to the input.
  void fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::TransposedConvolution& spec) {
    flat.kind = DLRUN_CUDA_TRANSPOSED_CONVOLUTION;
    window(flat, spec, spec.kernel);
    flat.groups = 1;
    weights(node, {from.channels, spec.filters, spec.kernel, spec.kernel}, {spec.filters, spec.deviation},
            spec.bias);
  }
  // A convolution of one pixel with as many channels as there are inputs.
  void fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::FullyConnected& spec) {
    flat.kind = DLRUN_CUDA_CONVOLUTION;
    flat.in_channels = from.elements(), flat.in_height = flat.in_width = 1;
    flat.window = flat.window_width = flat.stride = flat.groups = 1;
    flat.activation = form_of(spec.activation);
    weights(node, {spec.outputs, from.elements()}, {from.channels, spec.deviation}, Bias::learned);
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::MaxPool& spec) {
    flat.kind = DLRUN_CUDA_MAX_POOL;
    window(flat, spec, spec.window);
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::GlobalAveragePool&) {
    flat.kind = DLRUN_CUDA_AVERAGE_POOL;
  }
  void fill(DlrunCudaNode& flat, const Node& node, const Shape&, const op::BatchNorm& spec) {
    flat.kind = DLRUN_CUDA_BATCH_NORM;
    flat.epsilon = spec.epsilon, flat.share = spec.momentum, flat.activation = form_of(spec.activation);
    vector(node, ".weight", &DlrunCudaNode::weight, spec.deviation > 0 ? init_bound(spec.deviation, 1) : 0,
           1);
    vector(node, ".bias", &DlrunCudaNode::bias, 0, 0);
    flat.running_mean = statistic(node, ".running_mean", 0);
    flat.running_variance = statistic(node, ".running_var", 1);
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Relu&) {
    flat.kind = DLRUN_CUDA_ACTIVATION;
    flat.activation = DLRUN_CUDA_RELU;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::LeakyRelu& spec) {
    flat.kind = DLRUN_CUDA_ACTIVATION;
    flat.activation = DLRUN_CUDA_LEAKY_RELU, flat.slope = spec.slope;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Tanh&) {
    flat.kind = DLRUN_CUDA_ACTIVATION;
    flat.activation = DLRUN_CUDA_TANH;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Dropout& spec) {
    flat.kind = DLRUN_CUDA_DROPOUT;
    flat.probability = spec.probability;
    flat.key = plan_.draws.size();
    plan_.draws.push_back({Draw::Of::dropout, spec.probability});
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Noise&) {
    flat.kind = DLRUN_CUDA_NOISE;
    flat.first_row = options_.rank * options_.batch;
    flat.key = plan_.draws.size();
    plan_.draws.push_back({Draw::Of::noise, 0});
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Add& spec) {
    flat.kind = DLRUN_CUDA_ADD;
    flat.activation = form_of(spec.activation);
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::SoftmaxCrossEntropy& spec) {
    flat.kind = DLRUN_CUDA_SOFTMAX_LOSS;
    flat.loss_weight = spec.weight;
    flat.report = report(DLRUN_CUDA_REPORTED);
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::SigmoidCrossEntropy& spec) {
    using Wanted = op::SigmoidCrossEntropy::Wanted;
    flat.kind = DLRUN_CUDA_SIGMOID_LOSS;
    flat.target = spec.wanted == Wanted::labels ? DLRUN_CUDA_OF_LABEL
                  : spec.wanted == Wanted::made ? DLRUN_CUDA_ALWAYS_0
                                                : DLRUN_CUDA_ALWAYS_1;
    flat.report = report(spec.wanted == Wanted::mistaken ? DLRUN_CUDA_OF_GENERATOR : DLRUN_CUDA_REPORTED);
  }
  // The CPU's rule: padding counts where there is any and it is to.
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::AveragePool& spec) {
    flat.kind = DLRUN_CUDA_WINDOW_AVERAGE;
    window(flat, spec, spec.window);
    flat.counts_padding = spec.counted == Padding::counts && spec.padding > 0 ? 1 : 0;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::LocalResponseNorm& spec) {
    flat.kind = DLRUN_CUDA_LOCAL_RESPONSE_NORM;
    flat.size = spec.size, flat.alpha = spec.alpha, flat.beta = spec.beta, flat.constant = spec.bias;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Concat&) {
    flat.kind = DLRUN_CUDA_CONCAT;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Detach&) {
    flat.kind = DLRUN_CUDA_DETACH;
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Reshape&) {
    flat.kind = DLRUN_CUDA_RESHAPE;
  }
  // What is left of them after fuse(): before a reader that means a vector.
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Flatten&) {
    flat.kind = DLRUN_CUDA_FLATTEN;
  }

  Result<void> no_form(const Node& node, const char* which) const {
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("model '{}': a {} {} has no form on a GPU", graph_.model,
                                          operation_name(node.operation), which),
                      .hint = "write device: cpu"});
  }

  DlrunCudaReport report(DlrunCudaReport where) const {
    const bool told = std::find(reported_.begin(), reported_.end(), last()) != reported_.end();
    return told ? where : DLRUN_CUDA_UNREPORTED;
  }

  std::size_t last() const { return plan_.nodes.size() - 1; }

  // A filter is `channels` of some pixels.
  struct Filter {
    std::int64_t channels;
    float deviation;
  };
  void weights(const Node& node, std::vector<std::int64_t> shape, const Filter& filter, Bias bias) {
    const auto filters = static_cast<std::size_t>(shape[0]),
               channels = static_cast<std::size_t>(filter.channels);
    Placed placed{.info = {node.name + ".weight", std::move(shape), TensorInfo::Role::parameter}};
    const std::size_t each = placed.info.elements() / filters;
    const float bound = init_bound(filter.deviation, static_cast<std::int64_t>(each));
    placed.filters = filters, placed.channels = channels, placed.pixels = each / channels;
    placed.bound = bound;
    parameter(node, std::move(placed), &DlrunCudaNode::weight);
    if (bias == Bias::learned)
      vector(node, ".bias", &DlrunCudaNode::bias, filter.deviation > 0 ? 0 : bound, 0);
  }

  // A number a channel of the output.
  static Placed channels_of(const Node& node, const char* part, TensorInfo::Role role) {
    return {.info = {node.name + part, {node.shape.channels}, role},
            .channels = static_cast<std::size_t>(node.shape.channels)};
  }
  void vector(const Node& node, const char* part, std::size_t DlrunCudaNode::*at, float bound,
              float constant) {
    Placed placed = channels_of(node, part, TensorInfo::Role::parameter);
    placed.bound = bound, placed.constant = constant;
    parameter(node, std::move(placed), at);
  }
  std::size_t statistic(const Node& node, const char* part, float constant) {
    Placed placed = channels_of(node, part, TensorInfo::Role::statistic);
    placed.constant = constant;
    return tensors_.statistic(node.weights, std::move(placed));
  }
  void parameter(const Node& node, Placed placed, std::size_t DlrunCudaNode::*at) {
    tensors_.parameter(last(), node.weights, std::move(placed), at);
    plan_.nodes.back().*at = 0;  // known to be there; its place follows
  }

  const Graph& graph_;
  const EngineOptions& options_;
  std::vector<std::size_t> reported_;
  CudaPlan plan_;
  FlatTensors tensors_;
  std::vector<bool> trained_;
};

}  // namespace

Result<CudaPlan> flatten(const Graph& graph, const EngineOptions& options) {
  return Lowering(graph, options).run();
}

}  // namespace dlrun::runtime
