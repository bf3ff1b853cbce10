// Softmax cross-entropy over f32 scores: the loss, the number of right answers, and the gradient of the mean
// over the batch, times the head's weight. The mean is over all rows, also those that do not count (label
// -1).
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

namespace {

class SoftmaxLoss final : public ScoreLoss {
 public:
  SoftmaxLoss(Plan& plan, const op::SoftmaxCrossEntropy& spec) : ScoreLoss(plan), spec_(spec) {}
  void forward(const Run& run) override {
    smoothing_ = run.mode == Mode::train ? spec_.smoothing : 0;
    ScoreLoss::forward(run);
  }

 private:
  BatchResult score(kernels::View gradient) override {
    return kernels::softmax_cross_entropy(gradient, scores_.value->floats(), labels().data(), batch_,
                                          static_cast<std::int64_t>(scores_.elements) / batch_, spec_.weight,
                                          smoothing_);
  }

  op::SoftmaxCrossEntropy spec_;
  float smoothing_ = 0;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SoftmaxCrossEntropy& spec) {
  return std::make_unique<SoftmaxLoss>(plan, spec);
}

}  // namespace dlrun::runtime
