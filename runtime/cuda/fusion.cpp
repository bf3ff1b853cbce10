// See fusion.hpp.
#include "runtime/cuda/fusion.hpp"

#include <algorithm>
#include <cstring>

namespace dlrun::runtime {

namespace {

class Fusion {
 public:
  Fusion(CudaPlan& plan, CudaTensors& tensors, const Graph& graph)
      : plan_(plan), tensors_(tensors), read_by_(readers(graph)) {}

  // Two batch norms that a sum alone reads are fused into it: neither of their values is written. They keep
  // their place in the plan, where their parameters are declared. Not where others share those: their
  // gradients add up in the order of the nodes, and here they come early.
  void fuse_norm_sums() {
    for (DlrunCudaNode& sum : plan_.nodes) {
      if (!is(sum, kSum) || sum.inputs[0] == sum.inputs[1]) continue;
      if (!is_fused_into_sum(sum.inputs[0]) || !is_fused_into_sum(sum.inputs[1])) continue;
      sum.kind = DLRUN_CUDA_NORM_SUM, sum.facts = DLRUN_CUDA_BACKWARD_READS_INPUTS;
      for (std::size_t i = 0; i < 2; ++i) {
        DlrunCudaNode& norm = plan_.nodes[sum.inputs[i]];
        sum.norms[i] = sum.inputs[i], sum.inputs[i] = norm.inputs[0];
        elide(norm);
        norm.input_count = 0, norm.needs_gradient = 0;
      }
    }
  }

  // A batch norm right before a sum that alone reads it is fused into that.
  void fuse_sums() {
    for (std::size_t index = 1; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &norm = plan_.nodes[index - 1], &sum = plan_.nodes[index];
      if (!is(norm, kNorm) || rectifies(norm) || !is(sum, kSum)) continue;
      if (read_by_[index - 1].size() != 1) continue;
      const std::size_t other = sum.inputs[0] == index - 1 ? sum.inputs[1] : sum.inputs[0];
      if (other == index - 1) continue;
      const DlrunCudaNode before = sum;
      sum = norm;
      sum.inputs[1] = other, sum.input_count = 2;
      sum.activation = before.activation, sum.needs_gradient = before.needs_gradient;
      give_way(index);
    }
  }

  // A maximum pooling right behind a batch norm that it alone reads is fused with it: what lies between is
  // the largest value of most models, and is never written.
  void fuse_pools() {
    for (std::size_t index = 2; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &norm = plan_.nodes[index - 1], &pool = plan_.nodes[index];
      if (!is(norm, kNorm) || norm.input_count != 1 || !is(pool, kPool)) continue;
      if (pool.inputs[0] != index - 1 || read_by_[index - 1].size() != 1) continue;
      if (read_by_[norm.inputs[0]].size() != 1 || rectifies(pool) || pool.in_depth != 0) continue;
      const DlrunCudaNode before = pool;
      pool = norm;
      pool.kind = DLRUN_CUDA_NORM_POOL;
      pool.height = before.height, pool.width = before.width;
      pool.window = before.window, pool.stride = before.stride, pool.padding = before.padding;
      pool.needs_gradient = before.needs_gradient;
      give_way(index);
    }
  }

  // A convolution's bias and activation wait for the maximum pooling right behind it that it alone is read
  // by: neither changes which number is the largest, and there are fewer numbers behind it. So what the
  // convolution gives is read once, and nothing of it is kept for the way back.
  void postpone_activations() {
    for (std::size_t index = 1; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &convolution = plan_.nodes[index - 1], &pool = plan_.nodes[index];
      if (!is(convolution, kConvolution) || !is(pool, kPool) || rectifies(pool)) continue;
      if (pool.inputs[0] != index - 1 || read_by_[index - 1].size() != 1) continue;
      if (convolution.bias == DLRUN_CUDA_NOWHERE && !rectifies(convolution)) continue;
      if (convolution.activation == DLRUN_CUDA_LEAKY_RELU && convolution.slope < 0) continue;
      if ((convolution.facts & DLRUN_CUDA_LEAVES_TERMS) != 0 || tensors_.shares(index - 1)) continue;
      pool.activation = convolution.activation, pool.slope = convolution.slope;
      convolution.activation = DLRUN_CUDA_NO_ACTIVATION;
      convolution.facts &= ~unsigned{DLRUN_CUDA_BACKWARD_READS_OUTPUT};
      if (rectifies(pool)) pool.facts |= DLRUN_CUDA_BACKWARD_READS_OUTPUT;
      std::swap(pool.bias, convolution.bias);
      tensors_.move_bias(index - 1, index);
    }
  }

  // What is exchanged over a tensor group changes where it lies: a term becomes the sum, and on the way back
  // the gradient of a value that all ranks have.
  void place_group_sums() {
    for (DlrunCudaNode& node : plan_.nodes) {
      if (!is(node, kGroupSum) && !is(node, kGroupCopy)) continue;
      node.facts |= DLRUN_CUDA_IN_PLACE;
      if (read_by_[node.inputs[0]].size() == 1) node.facts |= DLRUN_CUDA_PASSES_GRADIENT;
    }
  }

  // What is gathered from slices, and is read on the way back, is gathered again there where linear layers
  // alone read it: until then the slice is kept in its place.
  void gather_again() {
    for (std::size_t index = 0; index < plan_.nodes.size(); ++index) {
      if (!is(plan_.nodes[index], kGroupGather)) continue;
      const auto is_linear = [&](std::size_t reader) { return is(plan_.nodes[reader], kLinear); };
      const std::vector<std::size_t> read_by = readers_in_plan(index);
      if (!read_by.empty() && std::all_of(read_by.begin(), read_by.end(), is_linear))
        plan_.nodes[index].facts |= DLRUN_CUDA_GATHERED_AGAIN;
    }
  }

  // The sum of a residual network: what its branch ends in reads the gradient and leaves it as it is, and all
  // others who read the trunk come before the branch's end. So the gradient of the sum is that of both, in
  // its place, until the trunk's other readers add to it. A linear layer right before it adds the trunk
  // itself, but not where that is a term of a sum over a tensor group.
  void pass_gradients() {
    for (std::size_t index = 0; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode& sum = plan_.nodes[index];
      if (!is(sum, kSum) || rectifies(sum) || sum.inputs[0] == sum.inputs[1]) continue;
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t branch = sum.inputs[i], trunk = sum.inputs[1 - i];
        if (!passes(index, branch, trunk)) continue;
        if (branch + 1 == index && is(plan_.nodes[branch], kLinear)) join_sum(index, trunk);
        sum.facts |= DLRUN_CUDA_PASSES_GRADIENT;
        break;
      }
    }
  }

  // GELU right behind a linear layer that it alone reads joins it, and its derivative the linear layer that
  // alone reads it. What it is of stays: the joined layer's place holds it.
  void join_gelus() {
    for (std::size_t index = 1; index < plan_.nodes.size(); ++index) {
      DlrunCudaNode &linear = plan_.nodes[index - 1], &gelu = plan_.nodes[index];
      if (!is(linear, kLinear) || linear.input_count != 1 || linear.bias == DLRUN_CUDA_NOWHERE) continue;
      if (!is(gelu, "gelu") || !is_by_tanh(gelu) || gelu.inputs[0] != index - 1 || gelu.channels % 8 != 0)
        continue;
      if (read_by_[index - 1].size() != 1 || read_by_[index].size() != 1) continue;
      DlrunCudaNode& behind = plan_.nodes[read_by_[index][0]];
      if (!is(behind, kLinear)) continue;
      const DlrunCudaNode held = linear, before = gelu;
      gelu = linear;
      gelu.needs_gradient = before.needs_gradient;
      gelu.inner = behind.input_inner = index - 1;
      give_way(index);
      DlrunCudaNode& holder = plan_.nodes[index - 1];
      holder.facts = 0;
      holder.channels = held.channels, holder.height = held.height, holder.width = held.width;
    }
  }

 private:
  bool is_by_tanh(const DlrunCudaNode& node) const {
    op::Gelu spec;
    std::memcpy(&spec, node.settings, sizeof spec);
    return spec.form == op::Gelu::Form::tanh;
  }

  bool passes(std::size_t sum, std::size_t branch, std::size_t trunk) const {
    const std::size_t product = product_of(branch);
    if (!is(plan_.nodes[product], kLinear) || read_by_[branch].size() != 1) return false;
    if (plan_.nodes[branch].needs_gradient == 0 || plan_.nodes[trunk].needs_gradient == 0) return false;
    return std::all_of(read_by_[trunk].begin(), read_by_[trunk].end(),
                       [&](std::size_t reader) { return reader == sum || reader < product; });
  }

  // As nodes have joined.
  std::vector<std::size_t> readers_in_plan(std::size_t index) const {
    std::vector<std::size_t> out;
    for (std::size_t reader = index + 1; reader < plan_.nodes.size(); ++reader)
      for (std::size_t i = 0; i < plan_.nodes[reader].input_count; ++i)
        if (plan_.nodes[reader].inputs[i] == index) out.push_back(reader);
    return out;
  }

  // What gives the value, or the terms of it.
  std::size_t product_of(std::size_t branch) const {
    const DlrunCudaNode& node = plan_.nodes[branch];
    return is(node, kGroupSum) || is(node, kGroupScatter) ? node.inputs[0] : branch;
  }

  // The linear layer before the sum `index` becomes the sum.
  void join_sum(std::size_t index, std::size_t trunk) {
    DlrunCudaNode& sum = plan_.nodes[index];
    const DlrunCudaNode before = sum;
    sum = plan_.nodes[index - 1];
    sum.inputs[1] = trunk, sum.input_count = 2;
    sum.needs_gradient = before.needs_gradient;
    give_way(index);
  }

  static constexpr const char *kConvolution = "convolution", *kNorm = "batch_norm", *kSum = "add",
                              *kPool = "max_pool", *kLinear = "linear", *kGroupSum = "tensor_sum",
                              *kGroupCopy = "tensor_copy", *kGroupGather = "tensor_gather",
                              *kGroupScatter = "tensor_scatter";

  static void elide(DlrunCudaNode& node) { node.kind = DLRUN_CUDA_ELIDED, node.facts = DLRUN_CUDA_IS_ELIDED; }
  static bool rectifies(const DlrunCudaNode& node) { return node.activation != DLRUN_CUDA_NO_ACTIVATION; }

  bool is_fused_into_sum(std::size_t index) const {
    const DlrunCudaNode& norm = plan_.nodes[index];
    return is(norm, kNorm) && !rectifies(norm) && read_by_[index].size() == 1 && !tensors_.shares(index);
  }

  // The node before `index` is fused into it: that owns its tensors now.
  void give_way(std::size_t index) {
    plan_.nodes[index - 1] = {};
    elide(plan_.nodes[index - 1]);
    plan_.nodes[index - 1].weight = plan_.nodes[index - 1].bias = DLRUN_CUDA_NOWHERE;
    plan_.nodes[index - 1].inner = plan_.nodes[index - 1].input_inner = DLRUN_CUDA_NOWHERE;
    tensors_.move(index - 1, index);
  }

  CudaPlan& plan_;
  CudaTensors& tensors_;
  std::vector<std::vector<std::size_t>> read_by_;
};

}  // namespace

void fuse_neighbours(CudaPlan& plan, CudaTensors& tensors, const Graph& graph, const EngineOptions& options) {
  Fusion fusion(plan, tensors, graph);
  fusion.fuse_norm_sums();
  fusion.fuse_sums();
  fusion.fuse_pools();
  fusion.postpone_activations();
  if (options.precision == Precision::bf16) fusion.join_gelus();
  fusion.place_group_sums();
  fusion.gather_again();
  fusion.pass_gradients();
}

}  // namespace dlrun::runtime
