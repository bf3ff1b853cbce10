// GroupSlices: between a value, or its gradient, and the slices of it that the ranks of a tensor group have.
// A slice is an equal part of the rows of the batch (samples x positions), which lie one behind the other:
// what is done to each position by itself needs no more. Numbers of 16 bits are added in f32 and rounded
// once.
#pragma once

#include <cstring>

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

class GroupSlices {
 public:
  /// `elements`: of the whole value; the pass in which its sum is asked for.
  GroupSlices(Plan& plan, std::size_t elements, Pass pass)
      : calls_(plan.group_calls()),
        elements_(elements),
        part_(static_cast<std::size_t>(plan.part()->part)),
        slice_(elements / static_cast<std::size_t>(plan.part()->parts)) {
    if (plan.options().precision == Precision::bf16) wide_ = plan.scratch(elements * sizeof(float), pass);
  }

  /// This rank's slice of the sum of `from`.
  void sum(kernels::ConstView from, kernels::View slice) const {
    if (from.precision == Precision::f32)
      return calls_.reduce_scatter({static_cast<const float*>(from.data), elements_},
                                   {static_cast<float*>(slice.data), slice_}, CommDtype::f32);
    float* const all = wide_->floats();
    unpack(CommDtype::bf16, all, static_cast<const std::byte*>(from.data), elements_);
    calls_.reduce_scatter({all, elements_}, {all + part_ * slice_, slice_}, CommDtype::bf16);
    pack(CommDtype::bf16, static_cast<std::byte*>(slice.data), all + part_ * slice_, slice_);
  }
  /// All slices.
  void gather(kernels::ConstView slice, kernels::View to) const {
    const std::size_t bytes = to.precision == Precision::bf16 ? 2 : sizeof(float);
    calls_.gather({static_cast<const std::byte*>(slice.data), slice_ * bytes},
                  {static_cast<std::byte*>(to.data), elements_ * bytes});
  }

 private:
  GroupCalls& calls_;
  std::size_t elements_, part_, slice_;
  Buffer* wide_ = nullptr;
};

}  // namespace dlrun::runtime
