// GroupCalls: an engine's calls to its tensor group and to the stages beside it. Operators cannot fail; so
// the first Error is kept for the engine's status(), and no call is made after it.
#pragma once

#include <span>

#include "runtime/engine/stage_links.hpp"
#include "runtime/engine/tensor_group.hpp"

namespace dlrun::runtime {

class GroupCalls {
 public:
  GroupCalls(TensorGroup* group, StageLinks* stages) : group_(group), stages_(stages) {}

  int ranks() const { return group_ == nullptr ? 1 : group_->ranks(); }
  void sum(std::span<float> data, CommDtype dtype) {
    if (group_ != nullptr && status_) status_ = group_->sum(data, dtype);
  }
  void reduce_scatter(std::span<const float> data, std::span<float> mine, CommDtype dtype) {
    if (group_ != nullptr && status_) status_ = group_->reduce_scatter(data, mine, dtype);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    if (group_ != nullptr && status_) status_ = group_->gather(mine, all);
  }
  void receive_values(std::span<std::byte> values) {
    if (stages_ != nullptr && status_) status_ = stages_->receive_values(values);
  }
  void send_gradients(std::span<const std::byte> gradients) {
    if (stages_ != nullptr && status_) status_ = stages_->send_gradients(gradients);
  }
  void send_values(std::span<const std::byte> values) {
    if (stages_ != nullptr && status_) status_ = stages_->send_values(values);
  }
  void receive_gradients(std::span<std::byte> gradients) {
    if (stages_ != nullptr && status_) status_ = stages_->receive_gradients(gradients);
  }
  const Result<void>& status() const { return status_; }

 private:
  TensorGroup* group_;
  StageLinks* stages_;
  Result<void> status_;
};

}  // namespace dlrun::runtime
