// See lowering.hpp: a node of the graph, a node of the list.
#include "runtime/cuda/lowering.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

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
    fuse_neighbours(plan_, tensors_, graph_);
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
    if (node.inputs.size() > DLRUN_CUDA_MAX_INPUTS) return no_form(node, "of so many values");
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
    weights(node, {spec.filters, channels, spec.kernel, spec.kernel_width}, {channels, spec.init_std},
            spec.bias);
  }
  // The weights are those of the convolution that it turns round, from the output to the input.
  void fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::TransposedConvolution& spec) {
    flat.kind = DLRUN_CUDA_TRANSPOSED_CONVOLUTION;
    window(flat, spec, spec.kernel);
    flat.groups = 1;
    weights(node, {from.channels, spec.filters, spec.kernel, spec.kernel}, {spec.filters, spec.init_std},
            spec.bias);
  }
  // A convolution of one pixel with as many channels as there are inputs.
  void fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::FullyConnected& spec) {
    flat.kind = DLRUN_CUDA_CONVOLUTION;
    flat.in_channels = from.elements(), flat.in_height = flat.in_width = 1;
    flat.window = flat.window_width = flat.stride = flat.groups = 1;
    flat.activation = form_of(spec.activation);
    weights(node, {spec.outputs, from.elements()}, {from.channels, spec.init_std}, Bias::learned);
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
    flat.epsilon = spec.epsilon, flat.bn_momentum = spec.momentum, flat.activation = form_of(spec.activation);
    vector(node, ".weight", &DlrunCudaNode::weight, spec.init_std > 0 ? init_bound(spec.init_std, 1) : 0, 1);
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
    flat.rng_key = plan_.random_uses.size();
    plan_.random_uses.push_back({RandomUse::Of::dropout, spec.probability});
  }
  void fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Noise&) {
    flat.kind = DLRUN_CUDA_NOISE;
    flat.first_row = options_.rank * options_.batch;
    flat.rng_key = plan_.random_uses.size();
    plan_.random_uses.push_back({RandomUse::Of::noise, 0});
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
    using Target = op::SigmoidCrossEntropy::Target;
    flat.kind = DLRUN_CUDA_SIGMOID_LOSS;
    flat.target = spec.target == Target::labels ? DLRUN_CUDA_OF_LABEL
                  : spec.target == Target::fake ? DLRUN_CUDA_ALWAYS_0
                                                : DLRUN_CUDA_ALWAYS_1;
    flat.report = report(spec.target == Target::generator ? DLRUN_CUDA_OF_GENERATOR : DLRUN_CUDA_REPORTED);
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
    float init_std;
  };
  void weights(const Node& node, std::vector<std::int64_t> shape, const Filter& filter, Bias bias) {
    const auto filters = static_cast<std::size_t>(shape[0]),
               channels = static_cast<std::size_t>(filter.channels);
    const auto count = static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
    const std::size_t each = count / filters;
    const float bound = init_bound(filter.init_std, static_cast<std::int64_t>(each));
    parameter(node, {.name = node.name + ".weight", .shape = std::move(shape), .bound = bound},
              {filters, channels, each / channels}, &DlrunCudaNode::weight);
    if (bias == Bias::learned)
      vector(node, ".bias", &DlrunCudaNode::bias, filter.init_std > 0 ? 0 : bound, 0);
  }

  // A number per channel of the output.
  void vector(const Node& node, const char* part, std::size_t DlrunCudaNode::*at, float bound,
              float constant) {
    parameter(
        node,
        {.name = node.name + part, .shape = {node.shape.channels}, .bound = bound, .constant = constant},
        {1, static_cast<std::size_t>(node.shape.channels), 1}, at);
  }
  std::size_t statistic(const Node& node, const char* part, float constant) {
    return tensors_.statistic(node.weights, {node.name + part, node.shape.channels, constant});
  }
  void parameter(const Node& node, ParameterSpec spec, const DeviceOrder& order,
                 std::size_t DlrunCudaNode::*at) {
    tensors_.parameter(last(), node.weights, std::move(spec), order, at);
    plan_.nodes.back().*at = 0;  // known to be there; its place follows
  }

  const Graph& graph_;
  const EngineOptions& options_;
  std::vector<std::size_t> reported_;
  CudaPlan plan_;
  CudaTensors tensors_;
  std::vector<bool> trained_;
};

}  // namespace

Result<CudaPlan> lower(const Graph& graph, const EngineOptions& options) {
  return Lowering(graph, options).run();
}

}  // namespace dlrun::runtime
