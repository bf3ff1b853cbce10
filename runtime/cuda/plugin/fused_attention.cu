// Attention by cuDNN, fused: the scores are never in memory. The operations are those that its engines know
// as one pattern: forward Q K^T, scale, mask, softmax and its logarithm, times V; backward recomputes the
// probabilities from that logarithm. dQ is the product of whole rows, not a sum by atomics: its bits repeat.
#include <algorithm>

#include "runtime/cuda/plugin/attention.hpp"
#include "runtime/cuda/plugin/dnn_graph.hpp"
#include "runtime/cuda/plugin/hopper_attention.hpp"

namespace dlrun::cuda {
namespace {

using Kept = DnnGraph::Kept;
using Id = DnnGraph::Id;
constexpr std::int64_t kWidest = 128;  // of a head, backward

// One workspace for all layers: they run one after the other.
void* workspace_of(Device& device, std::size_t bytes) {
  if (bytes > device.attention_bytes) {
    device.attention_workspace = device.memory.device(bytes, "workspace of attention");
    device.attention_bytes = bytes;
  }
  return device.attention_workspace;
}

// Tensors of one attention, as cuDNN numbers them.
class Tensors {
 public:
  Tensors(DnnGraph& graph, const AttentionSizes& of) : graph_(graph), of_(of) {}

  // [batch, heads, length, width] in rows of `row` numbers.
  Id heads(std::int64_t heads, std::int64_t row) {
    return graph_.tensor({{of_.batch, heads, of_.length, of_.width}, {of_.length * row, of_.width, row, 1}},
                         CUDNN_DATA_BFLOAT16, Kept::in_memory);
  }
  Id turned_heads(std::int64_t heads, std::int64_t row) {
    return graph_.tensor({{of_.batch, heads, of_.width, of_.length}, {of_.length * row, of_.width, 1, row}},
                         CUDNN_DATA_BFLOAT16, Kept::in_memory);
  }
  Id inner_heads(std::int64_t heads, std::int64_t row) {
    return graph_.tensor({{of_.batch, heads, of_.length, of_.width}, {of_.length * row, of_.width, row, 1}},
                         CUDNN_DATA_BFLOAT16, Kept::inside);
  }
  // All heads of keys or values, before those that share are added.
  Id full_heads(cudnnDataType_t type) {
    const std::int64_t head = of_.length * of_.width;
    return graph_.tensor(
        {{of_.batch, of_.heads, of_.length, of_.width}, {of_.heads * head, head, of_.width, 1}}, type,
        Kept::inside);
  }
  Id scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    const std::int64_t square = of_.length * of_.length;
    return graph_.tensor(
        {{of_.batch, of_.heads, of_.length, of_.length}, {of_.heads * square, square, of_.length, 1}}, type,
        Kept::inside);
  }
  Id turned_scores() {
    const std::int64_t square = of_.length * of_.length;
    return graph_.tensor(
        {{of_.batch, of_.heads, of_.length, of_.length}, {of_.heads * square, square, 1, of_.length}},
        CUDNN_DATA_BFLOAT16, Kept::inside);
  }
  Id columns(Kept kept) {
    return graph_.tensor({{of_.batch, of_.heads, of_.length, 1}, {of_.heads * of_.length, of_.length, 1, 1}},
                         CUDNN_DATA_FLOAT, kept);
  }
  // The scores, -infinity where the key comes behind the query.
  Id masked(Id scores_before) {
    const Id rows = scores(CUDNN_DATA_INT32), columns_ = scores(CUDNN_DATA_INT32);
    const Id holds = scores(CUDNN_DATA_BOOLEAN), out = scores();
    const Id never = graph_.value(-INFINITY);
    graph_.places(2, scores_before, rows);
    graph_.places(3, scores_before, columns_);
    graph_.compare(CUDNN_POINTWISE_CMP_GE, rows, columns_, holds);
    graph_.choose(scores_before, never, holds, out);
    return out;
  }
  Id mapped(cudnnPointwiseMode_t mode, Id x, Id other) {
    const Id out = scores();
    graph_.map(mode, x, other, out);
    return out;
  }

 private:
  DnnGraph& graph_;
  AttentionSizes of_;
};

class Forward {
 public:
  explicit Forward(const AttentionSizes& of) : of_(of) {
    Tensors tensors(graph_, of);
    q_ = tensors.heads(of.heads, of.packed());
    k_ = tensors.turned_heads(of.key_heads, of.packed());
    v_ = tensors.heads(of.key_heads, of.packed());
    out_ = tensors.heads(of.heads, of.features());
    figures_ = tensors.columns(Kept::in_memory);
    const Id products = tensors.scores();
    graph_.product(q_, k_, products);
    const Id scores = tensors.masked(tensors.mapped(CUDNN_POINTWISE_MUL, products, graph_.value(of.scale())));
    const Id high = tensors.columns(Kept::inside), sum = tensors.columns(Kept::inside),
             logarithm = tensors.columns(Kept::inside), shares = tensors.scores(CUDNN_DATA_BFLOAT16);
    graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, high);
    const Id off = tensors.mapped(CUDNN_POINTWISE_SUB, scores, high), powers = tensors.scores();
    graph_.map(CUDNN_POINTWISE_EXP, off, powers);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
    graph_.map(CUDNN_POINTWISE_LOG, sum, logarithm);
    graph_.map(CUDNN_POINTWISE_ADD, high, logarithm, figures_);
    graph_.map(CUDNN_POINTWISE_DIV, powers, sum, shares);
    graph_.product(shares, v_, out_);
  }
  DnnGraph& graph() { return graph_; }
  void run(Device& device, const AttentionArrays& arrays) {
    const auto* const packed = static_cast<const Bf16*>(arrays.packed);
    graph_.run(device.main,
               {{q_, packed},
                {k_, packed + of_.keys_at()},
                {v_, packed + of_.values_at()},
                {out_, arrays.out},
                {figures_, arrays.figures}},
               device.attention_workspace);
  }

 private:
  DnnGraph graph_;
  AttentionSizes of_;
  Id q_, k_, v_, out_, figures_;
};

class Backward {
 public:
  Backward(Device& device, const AttentionSizes& of) : of_(of) {
    Tensors tensors(graph_, of);
    const Id scale = graph_.value(of.scale()), one = graph_.value(1);
    q_ = tensors.heads(of.heads, of.packed());
    k_ = tensors.turned_heads(of.key_heads, of.packed());
    v_ = tensors.turned_heads(of.key_heads, of.packed());
    out_ = tensors.heads(of.heads, of.features());
    grad_ = tensors.heads(of.heads, of.features());
    figures_ = tensors.columns(Kept::in_memory), along_ = tensors.columns(Kept::in_memory);
    dq_ = tensors.heads(of.heads, of.packed());
    dk_ = tensors.heads(of.key_heads, of.packed()), dv_ = tensors.heads(of.key_heads, of.packed());

    // Of each query: its gradient times its result.
    const Id both = graph_.tensor({{of.batch, of.heads, of.length, of.width},
                                   {of.length * of.features(), of.length * of.width, of.features(), 1}},
                                  CUDNN_DATA_FLOAT, Kept::inside);
    const Id summed = tensors.columns(Kept::inside);
    graph_.map(CUDNN_POINTWISE_MUL, grad_, out_, both);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, both, summed);
    graph_.map(CUDNN_POINTWISE_MUL, summed, one, along_);

    // The probabilities, and dV.
    const Id products = tensors.scores(), shares = tensors.scores(), turned = tensors.turned_scores();
    graph_.product(q_, k_, products);
    const Id scaled = tensors.mapped(CUDNN_POINTWISE_MUL, products, scale);
    graph_.map(CUDNN_POINTWISE_EXP, tensors.masked(tensors.mapped(CUDNN_POINTWISE_SUB, scaled, figures_)),
               shares);
    graph_.reshape(shares, turned);
    add_shared(tensors, turned, grad_, dv_);

    // The gradient of the scores, dK and dQ.
    const Id of_shares = tensors.scores(), turned_grad = tensors.turned_scores();
    graph_.product(grad_, v_, of_shares);
    const Id of_scores = tensors.mapped(
        CUDNN_POINTWISE_MUL,
        tensors.mapped(CUDNN_POINTWISE_MUL, tensors.mapped(CUDNN_POINTWISE_SUB, of_shares, along_), shares),
        scale);
    graph_.reshape(of_scores, turned_grad);
    add_shared(tensors, turned_grad, q_, dk_);
    const Id keys = tensors.inner_heads(of.key_heads, of.packed());
    graph_.reshape(k_, keys);
    graph_.product(of_scores, keys, dq_);
    sums_ = static_cast<float*>(device.memory.device(static_cast<std::size_t>(of.queries()) * sizeof(float),
                                                     "gradients of attention"));
  }
  DnnGraph& graph() { return graph_; }
  void run(Device& device, const AttentionArrays& arrays) {
    const auto* const packed = static_cast<const Bf16*>(arrays.packed);
    auto* const to = static_cast<Bf16*>(arrays.grad_packed);
    graph_.run(device.main,
               {{q_, packed},
                {k_, packed + of_.keys_at()},
                {v_, packed + of_.values_at()},
                {out_, arrays.out},
                {grad_, arrays.grad_out},
                {figures_, arrays.figures},
                {along_, sums_},
                {dq_, to},
                {dk_, to + of_.keys_at()},
                {dv_, to + of_.values_at()}},
               device.attention_workspace);
  }

 private:
  // Products of all heads; heads of keys that several queries share take the sum of theirs.
  void add_shared(Tensors& tensors, Id left, Id right, Id to) {
    if (of_.heads == of_.key_heads) return graph_.product(left, right, to);
    const Id all = tensors.full_heads(CUDNN_DATA_BFLOAT16);
    graph_.product(left, right, all);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, all, to);
  }

  DnnGraph graph_;
  AttentionSizes of_;
  Id q_, k_, v_, out_, grad_, figures_, along_, dq_, dk_, dv_;
  float* sums_ = nullptr;
};

// Backward by our own kernel where that is for this GPU and these sizes.
class FusedAttention final : public AttentionForm {
 public:
  FusedAttention(Device& device, const AttentionSizes& of) : of_(of), forward_(of), own_(of) {
    if (!HopperAttentionGradient::fits(device, of)) backward_ = std::make_unique<Backward>(device, of);
  }
  bool build(Device& device) {
    if (!forward_.graph().build(device.main.dnn)) return false;
    if (backward_ != nullptr && !backward_->graph().build(device.main.dnn)) return false;
    const std::size_t backward = backward_ != nullptr ? backward_->graph().workspace_bytes()
                                                      : HopperAttentionGradient::workspace_bytes(of_);
    workspace_of(device, std::max(forward_.graph().workspace_bytes(), backward));
    return true;
  }
  void forward(Device& device, const AttentionArrays& arrays) override { forward_.run(device, arrays); }
  void backward(Device& device, const AttentionArrays& arrays) override {
    if (backward_ != nullptr) return backward_->run(device, arrays);
    own_.run(device, arrays, device.attention_workspace);
  }

 private:
  AttentionSizes of_;
  Forward forward_;
  std::unique_ptr<Backward> backward_;
  HopperAttentionGradient own_;
};

}  // namespace

std::unique_ptr<AttentionForm> make_fused_attention(Device& device, const AttentionSizes& sizes) {
  if (!device.half() || sizes.width % 8 != 0 || sizes.width > kWidest) return nullptr;
  auto made = std::make_unique<FusedAttention>(device, sizes);
  if (!made->build(device)) return nullptr;
  return made;
}

}  // namespace dlrun::cuda
