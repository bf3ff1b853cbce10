// Target loss: one warp a row, in double and by the rules of the CPU's (cpu/operators/target_loss.cpp). A row
// with a label of -1 does not count. Forward leaves the gradient too.
#include "runtime/cuda/plugin/loss_rows.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {
namespace {

using Measure = op::TargetLoss::Measure;

// Of one number: the loss, and its derivative by the score.
struct Point {
  double loss, gradient;
};

__device__ inline Point sigmoid_point(double logit, double target) {
  const double small = exp(-fabs(logit));
  const double share = (logit > 0 ? 1.0 : small) / (1 + small);
  return {fmax(logit, 0.0) - logit * target + log1p(small), share - target};
}

__device__ inline Point point(const op::TargetLoss& spec, double score, double target) {
  if (spec.measure == Measure::sigmoid) return sigmoid_point(score, target);
  const double error = score - target, sign = error > 0 ? 1 : (error < 0 ? -1 : 0);
  if (spec.measure == Measure::squared) return {error * error, 2 * error};
  if (spec.measure == Measure::absolute) return {fabs(error), sign};
  const double delta = spec.delta;
  if (fabs(error) <= delta) return {error * error / 2, error};
  return {delta * (fabs(error) - delta / 2), delta * sign};
}

// What LossRows adds up of a row: its loss, right answers, and the members of DlrunCudaResult from `absolute`
// on.
enum Told { kLoss, kCorrect, kAbsolute, kSquared, kFound, kMarked, kTold };

__device__ inline void tell_label(double (&sums)[kTold], bool said, bool there) {
  sums[kCorrect] += said == there ? 1 : 0;
  sums[kFound] += said && there ? 1 : 0;
  sums[kMarked] += (said ? 1 : 0) + (there ? 1 : 0);
}
__device__ inline void tell_error(double (&sums)[kTold], double error, double width) {
  sums[kAbsolute] += error / width;
  sums[kSquared] += error * error / width;
}

template <class T>
__global__ void score(T* grad, bool adds, const T* scores, const float* targets, const std::int32_t* labels,
                      double* rows, std::int64_t batch, int width, op::TargetLoss spec) {
  const std::int64_t row = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  if (row >= batch) return;
  const bool counts = labels[row] >= 0;
  const double numbers = width, weight = spec.weight;
  double sums[kTold] = {};
  for (int i = threadIdx.x % 32; i < width; i += 32) {
    const double told = number(scores[row * width + i]), target = targets[row * width + i];
    const Point here = counts ? point(spec, told, target) : Point{0, 0};
    if (grad != nullptr) {
      T& to = grad[row * width + i];
      put(to, (adds ? number(to) : 0.0F) +
                  static_cast<float>(weight * here.gradient / (numbers * static_cast<double>(batch))));
    }
    if (!counts) continue;
    sums[kLoss] += here.loss / numbers;
    if (spec.measure == Measure::sigmoid)
      tell_label(sums, told > 0, target > 0.5);
    else
      tell_error(sums, fabs(told - target), numbers);
  }
  for (int which = 0; which < kTold; ++which) {
    const double sum = sum_of_warp(sums[which]);
    if (threadIdx.x % 32 == 0) rows[row * kTold + which] = sum;
  }
}

class TargetLoss final : public Operator {
 public:
  TargetLoss(Device& device, const DlrunCudaNode& node)
      : node_(node), spec_(settings_of<op::TargetLoss>(node)), rows_(device, node, device.batch, 1, kTold) {}
  void forward(Device& device, Mode mode) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    const LossRows::GradientRows grad = LossRows::grad(in, mode);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      score<<<blocks(device.batch * 32), 256, 0, device.stream>>>(
          static_cast<T*>(grad.array), grad.adds, static_cast<const T*>(in.value), device.targets,
          device.labels, rows_.data(), device.batch, static_cast<int>(node_.in_channels), spec_);
    });
    check(cudaGetLastError(), "the loss");
    rows_.report(device);
  }
  void backward(Device&) override {}

 private:
  DlrunCudaNode node_;
  op::TargetLoss spec_;
  LossRows rows_;
};

}  // namespace

OperatorPtr make_target_loss(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TargetLoss>(device, plan.nodes[index]);
}

}  // namespace dlrun::cuda
