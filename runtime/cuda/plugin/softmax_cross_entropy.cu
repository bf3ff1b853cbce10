// Softmax cross-entropy: one warp a row, in double as on the CPU. An auxiliary head's loss leaves its
// gradient, weighted, and is not reported. Forward leaves the gradient too.
#include "runtime/cuda/plugin/loss_rows.hpp"

namespace dlrun::cuda {
namespace {

// The targets of rows, as kernels::SoftmaxTargets of CPUs has them.
struct Targets {
  const std::int32_t* labels;
  double smoothing;
  const std::int32_t* other_labels;  // null where labels are not mixed
  const float* own_weights;
};

// One warp a row; ties go to the lowest class.
template <class T>
__global__ void score(T* grad, bool adds, const T* scores, Targets targets, double* rows, std::int64_t batch,
                      int classes, double weight) {
  const std::int64_t row = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  if (row >= batch) return;
  const int lane = threadIdx.x % 32;
  const T* mine = scores + row * classes;
  const std::int32_t label = targets.labels[row];
  const bool counts = label >= 0 && label < classes;
  float high = -INFINITY;
  int best = classes;
  for (int i = lane; i < classes; i += 32)
    if (number(mine[i]) > high) high = number(mine[i]), best = i;
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, high, offset);
    const int at = __shfl_xor_sync(0xffffffffU, best, offset);
    if (other > high || (other == high && at < best)) high = other, best = at;
  }
  double sum = 0;
  for (int i = lane; i < classes; i += 32) sum += exp(static_cast<double>(number(mine[i])) - high);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  const double smoothing = targets.smoothing, everywhere = smoothing / classes;
  double all = 0;  // of the scores
  for (int i = lane; smoothing > 0 && i < classes; i += 32) all += number(mine[i]);
  for (int offset = 16; smoothing > 0 && offset > 0; offset /= 2)
    all += __shfl_xor_sync(0xffffffffU, all, offset);
  const std::int32_t other = targets.other_labels == nullptr ? -1 : targets.other_labels[row];
  const double share_of_label = targets.own_weights == nullptr ? 1.0 : targets.own_weights[row];
  const double own = (1 - smoothing) * share_of_label, rest = (1 - smoothing) * (1 - share_of_label);
  if (lane == 0) {
    double loss = counts ? log(sum) + high - own * number(mine[label]) - everywhere * all : 0.0;
    if (counts && other >= 0 && other < classes) loss -= rest * number(mine[other]);
    rows[2 * row] = loss;
    rows[2 * row + 1] = counts && best == (own >= rest ? label : other) ? 1.0 : 0.0;
  }
  if (grad == nullptr) return;
  for (int i = lane; i < classes; i += 32) {
    const double target = (i == label ? own : 0.0) + (i == other ? rest : 0.0) + everywhere;
    const double share = exp(static_cast<double>(number(mine[i])) - high) / sum - target;
    T& to = grad[row * classes + i];
    put(to, (adds ? number(to) : 0.0F) +
                (counts ? static_cast<float>(share * weight / static_cast<double>(batch)) : 0.0F));
  }
}

class SoftmaxLoss final : public Operator {
 public:
  SoftmaxLoss(Device& device, const DlrunCudaNode& node)
      : node_(node), spec_(settings_of<op::SoftmaxCrossEntropy>(node)), rows_(device, node, device.batch) {}
  void forward(Device& device, Mode mode) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    const LossRows::GradientRows grad = LossRows::grad(in, mode);
    Targets targets{device.labels, 0, nullptr, nullptr};
    if (mode == Mode::train) {
      targets.smoothing = static_cast<double>(spec_.smoothing);
      targets.other_labels = device.mixed;
      if (device.mixed != nullptr)
        targets.own_weights = reinterpret_cast<const float*>(device.mixed + device.batch);
    }
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      score<<<blocks(device.batch * 32), 256, 0, device.stream>>>(
          static_cast<T*>(grad.array), grad.adds, static_cast<const T*>(in.value), targets, rows_.data(),
          device.batch, static_cast<int>(node_.in_channels), static_cast<double>(spec_.weight));
    });
    check(cudaGetLastError(), "the loss");
    rows_.report(device);
  }
  void backward(Device&) override {}

 private:
  DlrunCudaNode node_;
  op::SoftmaxCrossEntropy spec_;
  LossRows rows_;
};

}  // namespace

OperatorPtr make_softmax_cross_entropy(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<SoftmaxLoss>(device, plan.nodes[index]);
}

}  // namespace dlrun::cuda
