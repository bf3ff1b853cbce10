// GroupSum: the sum of an activation, or of its gradient, over a tensor group. Numbers of 16 bits are added
// in f32 and rounded once.
#pragma once

#include <cstring>

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

class GroupSum {
 public:
  GroupSum(Plan& plan, std::size_t elements, Pass pass) : calls_(plan.group_calls()), elements_(elements) {
    if (plan.options().precision == Precision::bf16) wide_ = plan.scratch(elements * sizeof(float), pass);
  }

  /// In place, or from one value into another.
  void run(kernels::ConstView from, kernels::View to) const {
    const bool is_wide = to.precision == Precision::f32;
    float* const numbers = is_wide ? static_cast<float*>(to.data) : wide_->floats();
    if (from.precision == Precision::bf16)
      unpack(CommDtype::bf16, numbers, static_cast<const std::byte*>(from.data), elements_);
    else if (from.data != numbers)
      std::memcpy(numbers, from.data, elements_ * sizeof(float));
    calls_.sum({numbers, elements_}, from.precision == Precision::bf16 ? CommDtype::bf16 : CommDtype::f32);
    if (!is_wide) pack(CommDtype::bf16, static_cast<std::byte*>(to.data), numbers, elements_);
  }
  void run(kernels::View in_place) const { run({in_place.data, in_place.precision}, in_place); }

 private:
  GroupCalls& calls_;
  std::size_t elements_;
  Buffer* wide_ = nullptr;
};

}  // namespace dlrun::runtime
