// Sigmoid cross-entropy of one logit a row, in any layout and type: for two classes by their labels, or one
// of a GAN's three losses, whose targets are fixed.
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

namespace {

using Wanted = op::SigmoidCrossEntropy::Wanted;

class SigmoidLoss final : public Loss {
 public:
  SigmoidLoss(Plan& plan, const op::SigmoidCrossEntropy& spec) : Loss(plan), wanted_(spec.wanted) {}

 private:
  std::optional<int> target() const {
    if (wanted_ == Wanted::labels) return std::nullopt;
    return wanted_ == Wanted::made ? 0 : 1;
  }

  BatchResult score(kernels::View gradient) override {
    const BatchResult found = kernels::sigmoid_cross_entropy(
        gradient,
        {scores_.const_view(), labels().data(), batch_, static_cast<std::int64_t>(scores_.elements) / batch_},
        target());
    if (wanted_ != Wanted::mistaken) return found;
    return {.loss_sum = 0, .correct = 0, .generator_loss_sum = found.loss_sum};
  }

  Wanted wanted_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SigmoidCrossEntropy& spec) {
  return std::make_unique<SigmoidLoss>(plan, spec);
}

}  // namespace dlrun::runtime
