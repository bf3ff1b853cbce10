// GroupCalls: an engine's calls to its tensor group. Operators cannot fail; so the first Error is kept for
// the engine's status(), and no call is made after it.
#pragma once

#include <span>

#include "runtime/engine/tensor_group.hpp"

namespace dlrun::runtime {

class GroupCalls {
 public:
  explicit GroupCalls(TensorGroup* group) : group_(group) {}

  int ranks() const { return group_ == nullptr ? 1 : group_->ranks(); }
  void sum(std::span<float> data, CommDtype dtype) {
    if (group_ != nullptr && status_) status_ = group_->sum(data, dtype);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    if (group_ != nullptr && status_) status_ = group_->gather(mine, all);
  }
  const Result<void>& status() const { return status_; }

 private:
  TensorGroup* group_;
  Result<void> status_;
};

}  // namespace dlrun::runtime
