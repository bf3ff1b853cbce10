// Target loss over f32 scores, in double: a row's is the mean over its numbers, and the gradient that of the
// mean over the batch, also where some rows do not count (label -1).
#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels/elements.hpp"
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

namespace {

using Measure = op::TargetLoss::Measure;

// Of one number: the loss, and its derivative by the score.
struct Point {
  double loss, gradient;
};

Point sigmoid_point(double logit, double target) {
  const double small = std::exp(-std::abs(logit));
  const double share = (logit > 0 ? 1.0 : small) / (1 + small);
  return {std::max(logit, 0.0) - logit * target + std::log1p(small), share - target};
}

Point point(const op::TargetLoss& spec, double score, double target) {
  if (spec.measure == Measure::sigmoid) return sigmoid_point(score, target);
  const double error = score - target, sign = error > 0 ? 1 : (error < 0 ? -1 : 0);
  if (spec.measure == Measure::squared) return {error * error, 2 * error};
  if (spec.measure == Measure::absolute) return {std::abs(error), sign};
  const double delta = spec.delta;
  if (std::abs(error) <= delta) return {error * error / 2, error};
  return {delta * (std::abs(error) - delta / 2), delta * sign};
}

class TargetLoss final : public ScoreLoss {
 public:
  TargetLoss(Plan& plan, const op::TargetLoss& spec)
      : ScoreLoss(plan),
        spec_(spec),
        width_(plan.input_shape().channels),
        targets_(plan.targets(static_cast<std::size_t>(width_))) {}

 private:
  BatchResult score(kernels::View gradient) override {
    BatchResult sum;
    for (std::int64_t row = 0; row < batch_; ++row) score_row(row, gradient, sum);
    return sum;
  }

  void score_row(std::int64_t row, kernels::View gradient, BatchResult& sum) const {
    const bool counts = labels()[static_cast<std::size_t>(row)] >= 0;
    const auto numbers = static_cast<double>(width_);
    for (std::int64_t at = row * width_; at < (row + 1) * width_; ++at) {
      const double score = scores_.value->floats()[at], target = targets_->floats()[at];
      const Point here = counts ? point(spec_, score, target) : Point{0, 0};
      if (gradient.data != nullptr)
        kernels::put(gradient, at, spec_.weight * here.gradient / (numbers * static_cast<double>(batch_)));
      if (!counts) continue;
      sum.loss_sum += here.loss / numbers;
      if (spec_.measure == Measure::sigmoid)
        count_label(score > 0, target > 0.5, sum);
      else
        add_error(std::abs(score - target), numbers, sum);
    }
  }

  static void count_label(bool said, bool there, BatchResult& sum) {
    sum.correct += said == there ? 1 : 0;
    sum.target_sums.found += said && there ? 1 : 0;
    sum.target_sums.marked += (said ? 1 : 0) + (there ? 1 : 0);
  }
  static void add_error(double error, double numbers, BatchResult& sum) {
    sum.target_sums.absolute += error / numbers;
    sum.target_sums.squared += error * error / numbers;
  }

  op::TargetLoss spec_;
  std::int64_t width_;
  Buffer* targets_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TargetLoss& spec) {
  return std::make_unique<TargetLoss>(plan, spec);
}

}  // namespace dlrun::runtime
