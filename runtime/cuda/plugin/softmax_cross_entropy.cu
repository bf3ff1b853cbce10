// Softmax cross-entropy: one warp a row, in double as on the CPU. An auxiliary head's loss leaves its
// gradient, weighted, and is not reported. Forward leaves the gradient too.
#include "runtime/cuda/plugin/loss_rows.hpp"

namespace dlrun::cuda {
namespace {

// One warp a row; ties go to the lowest class.
template <class T>
__global__ void score(T* grad, bool adds, const T* scores, const std::int32_t* labels, double* rows,
                      std::int64_t batch, int classes, double weight, double smoothing) {
  const std::int64_t row = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  if (row >= batch) return;
  const int lane = threadIdx.x % 32;
  const T* mine = scores + row * classes;
  const std::int32_t label = labels[row];
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
  double all = 0;  // of the scores
  for (int i = lane; smoothing > 0 && i < classes; i += 32) all += number(mine[i]);
  for (int offset = 16; smoothing > 0 && offset > 0; offset /= 2)
    all += __shfl_xor_sync(0xffffffffU, all, offset);
  const double at_label = 1 - smoothing, everywhere = smoothing / classes;
  if (lane == 0) {
    rows[2 * row] = counts ? log(sum) + high - at_label * number(mine[label]) - everywhere * all : 0.0;
    rows[2 * row + 1] = counts && best == label ? 1.0 : 0.0;
  }
  if (grad == nullptr) return;
  for (int i = lane; i < classes; i += 32) {
    const double share =
        exp(static_cast<double>(number(mine[i])) - high) / sum - (i == label ? at_label : 0.0) - everywhere;
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
    const double smoothing = mode == Mode::train ? static_cast<double>(spec_.smoothing) : 0.0;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      score<<<blocks(device.batch * 32), 256, 0, device.stream>>>(
          static_cast<T*>(grad.array), grad.adds, static_cast<const T*>(in.value), device.labels,
          rows_.data(), device.batch, static_cast<int>(node_.in_channels), static_cast<double>(spec_.weight),
          smoothing);
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
