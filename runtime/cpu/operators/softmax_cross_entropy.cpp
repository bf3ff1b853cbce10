// Softmax cross-entropy over f32 scores: the loss, the number of right answers, and the gradient of the mean
// over the batch, times the head's weight. The mean is over all rows, also those that do not count (label
// -1).
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

namespace {

class SoftmaxLoss final : public ScoreLoss {
 public:
  SoftmaxLoss(Plan& plan, const op::SoftmaxCrossEntropy& spec)
      : ScoreLoss(plan), spec_(spec), mixed_(plan.mixed_labels()) {}
  void forward(const Run& run) override {
    mode_ = run.mode;
    ScoreLoss::forward(run);
  }

 private:
  // Smoothing and other labels are training's.
  kernels::SoftmaxTargets targets() const {
    kernels::SoftmaxTargets out{labels().data()};
    if (mode_ != Mode::train) return out;
    out.smoothing = spec_.smoothing;
    if (mixed_ == nullptr) return out;
    out.other_labels = reinterpret_cast<const std::int32_t*>(mixed_->data);
    out.own_weights = mixed_->floats() + batch_;
    return out;
  }
  BatchResult score(kernels::View gradient) override {
    return kernels::softmax_cross_entropy(gradient, scores_.value->floats(), targets(), batch_,
                                          static_cast<std::int64_t>(scores_.elements) / batch_, spec_.weight);
  }

  op::SoftmaxCrossEntropy spec_;
  Buffer* mixed_;
  Mode mode_ = Mode::train;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SoftmaxCrossEntropy& spec) {
  return std::make_unique<SoftmaxLoss>(plan, spec);
}

}  // namespace dlrun::runtime
