// See flat_plan.hpp.
#include "runtime/graph/cuda/flat_plan.hpp"

#include <cmath>

namespace dlrun::runtime {

namespace {

class Flattener {
 public:
  Flattener(const Graph& graph, const EngineOptions& options) : graph_(graph), options_(options) {}

  Result<FlatPlan> run() {
    if (options_.adam)
      return fail(
          Error{.kind = ErrorKind::unavailable,
                .what = fmt::format("model '{}': the optimizer adam has no form on a GPU", graph_.model),
                .hint = "write device: cpu, or optimizer: {name: sgd}"});
    const auto read_by = readers(graph_);
    for (const Node& node : graph_.nodes) {
      TRY(add(node));
      DlrunCudaNode& flat = plan_.nodes.back();
      const std::size_t index = plan_.nodes.size() - 1;
      bool needed = flat.weight != DLRUN_CUDA_NOWHERE;
      for (const Value input : node.inputs) needed = needed || trained_[input.get()];
      trained_.push_back(needed);
      flat.needs_gradient = needed && !read_by[index].empty() ? 1 : 0;
    }
    join_sums();
    join_pools();
    place();
    return std::move(plan_);
  }

 private:
  struct Owned {
    std::size_t node, tensor;
    std::size_t DlrunCudaNode::*at;
  };

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
    return std::visit([&](const auto& spec) { return fill(plan_.nodes.back(), node, from, spec); },
                      node.operation);
  }

  static int flag(Activation activation) { return activation == Activation::relu ? 1 : 0; }

  template <class Windowed>
  static void window(DlrunCudaNode& flat, const Windowed& spec, std::int64_t size) {
    flat.window = flat.window_width = size, flat.stride = spec.stride;
    flat.padding = flat.padding_width = spec.padding;
    if constexpr (requires { spec.activation; }) flat.relu = flag(spec.activation);
  }

  // A batch norm right before a sum that alone reads it joins that: one pass over memory less in each
  // direction.
  void join_sums() {
    const auto read_by = readers(graph_);
    for (std::size_t index = 1; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &norm = plan_.nodes[index - 1], &sum = plan_.nodes[index];
      if (norm.kind != DLRUN_CUDA_BATCH_NORM || norm.relu != 0 || sum.kind != DLRUN_CUDA_ADD) continue;
      if (read_by[index - 1].size() != 1) continue;
      const std::size_t other = sum.inputs[0] == index - 1 ? sum.inputs[1] : sum.inputs[0];
      if (other == index - 1) continue;
      const DlrunCudaNode before = sum;
      sum = norm;
      sum.inputs[1] = other, sum.input_count = 2;
      sum.relu = before.relu, sum.needs_gradient = before.needs_gradient;
      give_way(index);
    }
  }

  // A maximum pooling right behind a batch norm that it alone reads takes that in: what lies between is the
  // largest value of most models, and is never written.
  void join_pools() {
    const auto read_by = readers(graph_);
    for (std::size_t index = 2; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &norm = plan_.nodes[index - 1], &pool = plan_.nodes[index];
      if (norm.kind != DLRUN_CUDA_BATCH_NORM || norm.input_count != 1 || pool.kind != DLRUN_CUDA_MAX_POOL)
        continue;
      if (pool.inputs[0] != index - 1 || read_by[index - 1].size() != 1) continue;
      if (read_by[norm.inputs[0]].size() != 1 || pool.relu != 0) continue;
      const DlrunCudaNode before = pool;
      pool = norm;
      pool.kind = DLRUN_CUDA_NORM_POOL;
      pool.height = before.height, pool.width = before.width;
      pool.window = before.window, pool.stride = before.stride, pool.padding = before.padding;
      pool.needs_gradient = before.needs_gradient;
      give_way(index);
    }
  }

  // The node before `index` joined it: that owns its tensors now.
  void give_way(std::size_t index) {
    plan_.nodes[index - 1] = {};
    plan_.nodes[index - 1].kind = DLRUN_CUDA_NOTHING;
    plan_.nodes[index - 1].weight = plan_.nodes[index - 1].bias = DLRUN_CUDA_NOWHERE;
    for (Owned& owned : owned_)
      if (owned.node == index - 1) owned.node = index;
  }

  Result<void> fill(DlrunCudaNode&, const Node&, const Shape&, const op::Input&) { return {}; }
  Result<void> fill(DlrunCudaNode& flat, const Node& node, const Shape& from, const op::Convolution& spec) {
    if (spec.activation == Activation::leaky_relu) return no_form(node, "with a leaky ReLU behind it");
    if (spec.activation == Activation::tanh) return no_form(node, "with a tanh behind it");
    if (spec.deviation > 0 || node.weights != Weights::own) return no_form(node, "of a GAN");
    flat.kind = DLRUN_CUDA_CONVOLUTION;
    window(flat, spec, spec.kernel);
    flat.window_width = spec.kernel_width, flat.padding_width = spec.padding_width;
    flat.groups = spec.groups;
    const std::int64_t channels = from.channels / spec.groups;
    weights(flat, node, {spec.filters, channels, spec.kernel, spec.kernel_width}, channels,
            spec.kernel * spec.kernel_width, spec.bias);
    return {};
  }
  // A convolution of one pixel with as many channels as there are inputs.
  Result<void> fill(DlrunCudaNode& flat, const Node& node, const Shape& from,
                    const op::FullyConnected& spec) {
    flat.kind = DLRUN_CUDA_CONVOLUTION;
    flat.in_channels = from.elements(), flat.in_height = flat.in_width = 1;
    flat.window = flat.window_width = flat.stride = flat.groups = 1;
    flat.relu = flag(spec.activation);
    weights(flat, node, {spec.outputs, from.elements()}, from.channels, from.height * from.width,
            Bias::learned);
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::MaxPool& spec) {
    flat.kind = DLRUN_CUDA_MAX_POOL;
    window(flat, spec, spec.window);
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::GlobalAveragePool&) {
    flat.kind = DLRUN_CUDA_AVERAGE_POOL;
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node& node, const Shape&, const op::BatchNorm& spec) {
    flat.kind = DLRUN_CUDA_BATCH_NORM;
    flat.epsilon = spec.epsilon, flat.share = spec.momentum, flat.relu = flag(spec.activation);
    vector(node, ".weight", &DlrunCudaNode::weight, 0, 1);
    vector(node, ".bias", &DlrunCudaNode::bias, 0, 0);
    statistic(node, ".running_mean", flat.running_mean, 0);
    statistic(node, ".running_var", flat.running_variance, 1);
    flat.weight = 0;  // known to be there; its place follows
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Relu&) {
    flat.kind = DLRUN_CUDA_RELU;
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Dropout& spec) {
    flat.kind = DLRUN_CUDA_DROPOUT;
    flat.probability = spec.probability;
    plan_.dropouts.push_back(spec.probability);
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Add& spec) {
    flat.kind = DLRUN_CUDA_ADD;
    flat.relu = flag(spec.activation);
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::SoftmaxCrossEntropy& spec) {
    flat.kind = DLRUN_CUDA_LOSS;
    flat.loss_weight = spec.weight;
    return {};
  }
  // The CPU's rule: padding counts where there is any and it is to.
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::AveragePool& spec) {
    flat.kind = DLRUN_CUDA_WINDOW_AVERAGE;
    window(flat, spec, spec.window);
    flat.counts_padding = spec.counted == Padding::counts && spec.padding > 0 ? 1 : 0;
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::LocalResponseNorm& spec) {
    flat.kind = DLRUN_CUDA_LOCAL_RESPONSE_NORM;
    flat.size = spec.size, flat.alpha = spec.alpha, flat.beta = spec.beta, flat.constant = spec.bias;
    return {};
  }
  Result<void> fill(DlrunCudaNode& flat, const Node&, const Shape&, const op::Concat&) {
    flat.kind = DLRUN_CUDA_CONCAT;
    return {};
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::TransposedConvolution&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::LeakyRelu&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::Tanh&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::Noise&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::Reshape&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::Detach&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::SigmoidCrossEntropy&) {
    return no_form(node, "");
  }
  Result<void> fill(DlrunCudaNode&, const Node& node, const Shape&, const op::Flatten&) {
    return no_form(node, "whose reader needs it");
  }

  Result<void> no_form(const Node& node, const char* which) const {
    return fail(Error{
        .kind = ErrorKind::unavailable,
        .what = fmt::format("model '{}': a {} {}has no form on a GPU", graph_.model,
                            operation_name(node.operation), *which == '\0' ? "" : fmt::format("{} ", which)),
        .hint = "write device: cpu"});
  }

  void weights(DlrunCudaNode& flat, const Node& node, std::vector<std::int64_t> shape, std::int64_t channels,
               std::int64_t pixels, Bias bias) {
    const float bound = 1.0F / std::sqrt(static_cast<float>(channels * pixels));
    const std::int64_t filters = shape[0];
    owned_.push_back({plan_.nodes.size() - 1, parameters_.size(), &DlrunCudaNode::weight});
    parameters_.push_back({.info = {node.name + ".weight", std::move(shape), TensorInfo::Role::parameter},
                           .filters = static_cast<std::size_t>(filters),
                           .channels = static_cast<std::size_t>(channels),
                           .pixels = static_cast<std::size_t>(pixels),
                           .bound = bound});
    if (bias == Bias::learned) vector(node, ".bias", &DlrunCudaNode::bias, bound, 0);
    flat.weight = 0;
  }

  void vector(const Node& node, const char* part, std::size_t DlrunCudaNode::*at, float bound,
              float constant) {
    owned_.push_back({plan_.nodes.size() - 1, parameters_.size(), at});
    parameters_.push_back({.info = {node.name + part, {node.shape.channels}, TensorInfo::Role::parameter},
                           .channels = static_cast<std::size_t>(node.shape.channels),
                           .bound = bound,
                           .constant = constant});
  }

  void statistic(const Node& node, const char* part, std::size_t& offset, float constant) {
    offset = plan_.statistics;
    statistics_.push_back({.info = {node.name + part, {node.shape.channels}, TensorInfo::Role::statistic},
                           .arena = DLRUN_CUDA_STATISTICS,
                           .offset = offset,
                           .channels = static_cast<std::size_t>(node.shape.channels),
                           .constant = constant});
    plan_.statistics += static_cast<std::size_t>(node.shape.channels);
  }

  // From the last node to the first; in a node as declared. Buckets are cut on the way.
  void place() {
    constexpr std::size_t line = 16;  // floats
    std::size_t begin = 0;
    for (std::size_t node = plan_.nodes.size(); node-- > 0;) {
      for (const Owned& owned : owned_) {
        if (owned.node != node) continue;
        plan_.nodes[node].*owned.at = plan_.floats;
        parameters_[owned.tensor].offset = plan_.floats;
        plan_.floats += (parameters_[owned.tensor].info.elements() + line - 1) / line * line;
      }
      if ((plan_.floats - begin) * sizeof(float) < options_.bucket_bytes) continue;
      close(begin, plan_.floats, node);
      begin = plan_.floats;
    }
    plan_.floats += FlatPlan::kSpareSlots;
    if (begin + FlatPlan::kSpareSlots == plan_.floats && !plan_.buckets.empty()) {
      plan_.buckets.back().length += FlatPlan::kSpareSlots;
      plan_.final_after.back().length += FlatPlan::kSpareSlots;
    } else {
      close(begin, plan_.floats, 0);
    }
    list();
  }

  void close(std::size_t begin, std::size_t end, std::size_t node) {
    plan_.buckets.push_back({begin, end - begin});
    plan_.final_after.push_back({begin, end - begin, node});
  }

  void list() {
    plan_.tensors = parameters_;
    plan_.tensors.insert(plan_.tensors.end(), statistics_.begin(), statistics_.end());
    for (Placed momentum : parameters_) {
      momentum.info.name += ".momentum";
      momentum.info.role = TensorInfo::Role::momentum;
      momentum.arena = DLRUN_CUDA_MOMENTA;
      plan_.tensors.push_back(std::move(momentum));
    }
  }

  const Graph& graph_;
  const EngineOptions& options_;
  FlatPlan plan_;
  std::vector<Placed> parameters_, statistics_;
  std::vector<Owned> owned_;
  std::vector<bool> trained_;
};

}  // namespace

Result<FlatPlan> flatten(const Graph& graph, const EngineOptions& options) {
  return Flattener(graph, options).run();
}

}  // namespace dlrun::runtime
