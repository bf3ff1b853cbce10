// See loss.hpp.
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

}  // namespace dlrun::runtime
