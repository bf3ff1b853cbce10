// See norm.hpp. All gradients come from one pass, so the input's is ready with the weights'.
#include "runtime/cpu/operators/norm.hpp"

#include <algorithm>

#include "runtime/cpu/parallel.hpp"

namespace dlrun::runtime {

Norm::Norm(Plan& plan, const kernels::NormRule& rule, Bias bias)
    : rule_(rule),
      in_(plan.input()),
      out_(plan.output()),
      rows_(plan.batch() * plan.node().shape.positions()),
      parts_(std::min(rows_, static_cast<std::int64_t>(detail::thread_count()))),
      row_floats_((rule.features + 15) / 16 * 16) {
  const Desc vector = vector_desc(rule_.features);
  scale_ = plan.parameter(".weight", vector);
  scale_gradient_ = plan.gradient_of(scale_, vector);
  if (bias == Bias::learned) {
    shift_ = plan.parameter(".bias", vector);
    shift_gradient_ = plan.gradient_of(shift_, vector);
  }
  out_.gradient_only_read = out_.value_not_read = true;
  for (Buffer** buffer : {&means_, &inverses_}) {
    *buffer = plan.scratch(static_cast<std::size_t>(rows_) * sizeof(float), Pass::forward);
    plan.use(*buffer, Pass::backward);
  }
  sums_ = plan.scratch(static_cast<std::size_t>(2 * parts_ * row_floats_) * sizeof(float), Pass::backward);
  plan.use(in_.value, Pass::backward);
  if (in_.needs_gradient()) in_gradient_ = in_.gradients[plan.claim_gradient()];
}

kernels::NormRows Norm::rows_of(std::int64_t part) const {
  return {part * rows_ / parts_, (part + 1) * rows_ / parts_};
}

float* Norm::part_of(std::int64_t part, std::int64_t which) const {
  return sums_->floats() + (2 * part + which) * row_floats_;
}

void Norm::forward(const Run&) {
  const kernels::NormForward of{out_.view(),
                                in_.const_view(),
                                scale_->value.floats(),
                                shift_ == nullptr ? nullptr : shift_->value.floats(),
                                means_->floats(),
                                inverses_->floats()};
  parallel_for(static_cast<std::size_t>(parts_), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part)
      kernels::norm(of, rows_of(static_cast<std::int64_t>(part)), rule_);
  });
}

void Norm::backward_weights(const Run&) {
  parallel_for(static_cast<std::size_t>(parts_), 1, [&](std::size_t begin, std::size_t end) {
    for (auto part = static_cast<std::int64_t>(begin); part < static_cast<std::int64_t>(end); ++part) {
      std::fill_n(part_of(part, 0), 2 * row_floats_, 0.0F);
      const kernels::NormBackward of{
          {in_gradient_ == nullptr ? nullptr : in_gradient_->data, in_.gradient_precision},
          out_.const_gradient(),
          in_.const_view(),
          scale_->value.floats(),
          means_->floats(),
          inverses_->floats(),
          part_of(part, 0),
          shift_ == nullptr ? nullptr : part_of(part, 1)};
      kernels::norm_backward(of, rows_of(part), rule_);
    }
  });
  add_parts(scale_gradient_->floats(), 0);
  if (shift_ != nullptr) add_parts(shift_gradient_->floats(), 1);
}

void Norm::add_parts(float* to, std::int64_t which) const {
  for (std::int64_t at = 0; at < rule_.features; ++at) {
    float sum = 0;
    for (std::int64_t part = 0; part < parts_; ++part) sum += part_of(part, which)[at];
    to[at] = sum;
  }
}

}  // namespace dlrun::runtime
