// Sigmoid cross-entropy of one logit a row, in double as on the CPU and written so that no logit overflows:
// for two classes by their labels, or one of a GAN's three losses, whose target is the same for every row.
// Forward leaves the gradient too.
#include "runtime/cuda/plugin/loss_rows.hpp"

namespace dlrun::cuda {
namespace {

// Whether a row counts, and the answer that is wanted of it.
struct Target {
  op::SigmoidCrossEntropy::Target of;
  __device__ bool counts(std::int32_t label) const {
    return label >= 0 && (of != op::SigmoidCrossEntropy::Target::labels || label <= 1);
  }
  __device__ bool wanted(std::int32_t label) const {
    return of == op::SigmoidCrossEntropy::Target::labels ? label == 1
                                                         : of != op::SigmoidCrossEntropy::Target::fake;
  }
};

template <class T>
void score(Device& device, T* grad, bool adds, const T* logits, double* rows, Target target) {
  const std::int32_t* labels = device.labels;
  const double batch = static_cast<double>(device.batch);
  for_each(device.stream, device.batch, [=] __device__(std::int64_t row) {
    const bool counts = target.counts(labels[row]), wanted = target.wanted(labels[row]);
    const double logit = number(logits[row]), aim = wanted ? 1 : 0;
    const double small = exp(-fabs(logit));
    rows[2 * row] = counts ? fmax(logit, 0.0) - logit * aim + log1p(small) : 0.0;
    rows[2 * row + 1] = counts && (logit > 0) == wanted ? 1.0 : 0.0;
    if (grad == nullptr) return;
    const double share = (logit > 0 ? 1.0 : small) / (1 + small);
    const float passed = counts ? static_cast<float>((share - aim) / batch) : 0.0F;
    put(grad[row], (adds ? number(grad[row]) : 0.0F) + passed);
  });
}

class SigmoidLoss final : public Operator {
 public:
  SigmoidLoss(Device& device, const DlrunCudaNode& node)
      : node_(node),
        target_{settings_of<op::SigmoidCrossEntropy>(node).target},
        rows_(device, node, device.batch) {}
  void forward(Device& device, Mode mode) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    const LossRows::GradientRows grad = LossRows::grad(in, mode);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      score(device, static_cast<T*>(grad.array), grad.adds, static_cast<const T*>(in.value), rows_.data(),
            target_);
    });
    rows_.report(device);
  }
  void backward(Device&) override {}

 private:
  DlrunCudaNode node_;
  Target target_;
  LossRows rows_;
};

}  // namespace

OperatorPtr make_sigmoid_cross_entropy(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<SigmoidLoss>(device, plan.nodes[index]);
}

}  // namespace dlrun::cuda
