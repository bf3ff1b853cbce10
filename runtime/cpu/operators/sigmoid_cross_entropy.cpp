// Sigmoid cross-entropy of one logit a row, in any layout and type: for two classes by their labels, or one
// of a GAN's three losses, whose targets are fixed.
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

namespace {

using Target = op::SigmoidCrossEntropy::Target;

class SigmoidLoss final : public ScoreLoss {
 public:
  SigmoidLoss(Plan& plan, const op::SigmoidCrossEntropy& spec) : ScoreLoss(plan), target_(spec.target) {}

 private:
  std::optional<int> target() const {
    if (target_ == Target::labels) return std::nullopt;
    return target_ == Target::fake ? 0 : 1;
  }

  BatchResult score(kernels::View gradient) override {
    const BatchResult found = kernels::sigmoid_cross_entropy(
        gradient,
        {scores_.const_view(), labels().data(), batch_, static_cast<std::int64_t>(scores_.elements) / batch_},
        target());
    if (target_ != Target::generator) return found;
    return {.loss_sum = 0, .correct = 0, .generator_loss_sum = found.loss_sum};
  }

  Target target_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SigmoidCrossEntropy& spec) {
  return std::make_unique<SigmoidLoss>(plan, spec);
}

}  // namespace dlrun::runtime
