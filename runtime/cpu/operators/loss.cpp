// See loss.hpp.
#include "runtime/cpu/operators/loss.hpp"

namespace dlrun::runtime {

Loss::Loss(Plan& plan)
    : labels_(plan.labels()), count_(static_cast<std::size_t>(plan.batch() * plan.labels_per_row())) {}

std::span<std::int32_t> Loss::labels() const {
  return {reinterpret_cast<std::int32_t*>(labels_->data), count_};
}

ScoreLoss::ScoreLoss(Plan& plan) : Loss(plan), scores_(plan.input()), batch_(plan.batch()) {
  plan.use(scores_.value, Pass::backward);
  if (scores_.needs_gradient()) reader_ = plan.claim_gradient();
}

void ScoreLoss::forward(const Run& run) {
  if (run.mode == Mode::train) return;
  result_ = score({nullptr, Precision::f32});
}

void ScoreLoss::backward_data(const Run&) {
  result_ = score(scores_.gradient(reader_));
}

}  // namespace dlrun::runtime
