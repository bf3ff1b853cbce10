// Softmax cross-entropy over f32 scores: the loss, the number of right answers, and the gradient of the mean
// over the batch, times the head's weight. The mean is over all rows, also those that do not count (label
// -1). What all losses share is here too.
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

Loss::Loss(Plan& plan) : scores_(plan.input()), batch_(plan.batch()), labels_(plan.labels()) {
  plan.use(scores_.value, Pass::backward);
  if (scores_.needs_gradient()) reader_ = plan.claim_gradient();
}

std::span<std::int32_t> Loss::labels() const {
  return {reinterpret_cast<std::int32_t*>(labels_->data), static_cast<std::size_t>(batch_)};
}

void Loss::forward(const Run& run) {
  if (run.mode == Mode::train) return;
  result_ = score({nullptr, Precision::f32});
}

void Loss::backward_data(const Run&) {
  result_ = score(scores_.gradient(reader_));
}

namespace {

class SoftmaxLoss final : public Loss {
 public:
  SoftmaxLoss(Plan& plan, const op::SoftmaxCrossEntropy& spec) : Loss(plan), weight_(spec.weight) {}

 private:
  BatchResult score(kernels::View gradient) override {
    return kernels::softmax_cross_entropy(gradient, scores_.value->floats(), labels().data(), batch_,
                                          static_cast<std::int64_t>(scores_.elements) / batch_, weight_);
  }

  float weight_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SoftmaxCrossEntropy& spec) {
  return std::make_unique<SoftmaxLoss>(plan, spec);
}

}  // namespace dlrun::runtime
