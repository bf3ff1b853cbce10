// ServerSlices: what one parameter server has: the weights of its slices and the optimizer's state of them,
// each in one array, slice behind slice, with zeros up to the next cache line. It updates as an engine does,
// number by number, so the bits are the same wherever a slice is. It knows no model: only how long slices
// are, and which have weight decay.
#pragma once

#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/train/servers/server_protocol.hpp"

namespace dlrun::runtime {

class ServerSlices {
 public:
  static Result<ServerSlices> make(const Optimizer& optimizer, std::vector<SliceFacts> slices);

  std::span<float> weights() const { return floats_of(weights_); }
  std::size_t state_slots() const { return state_.size(); }
  std::span<float> state(std::size_t slot) const { return floats_of(state_[slot]); }
  /// In which they travel, as offsets into weights(): no part has floats of two slices.
  const std::vector<MessagePart>& parts() const { return parts_; }

  /// One update by these gradients, which lie as the weights do.
  void update(const UpdateStep& step, std::span<const float> gradients);

 private:
  ServerSlices(const Optimizer& optimizer, std::vector<SliceFacts> slices)
      : optimizer_(optimizer), slices_(std::move(slices)) {}
  std::span<float> floats_of(const HugeBuffer& buffer) const {
    return {reinterpret_cast<float*>(buffer.data()), length_};
  }

  Optimizer optimizer_;
  std::vector<SliceFacts> slices_;
  std::vector<MessagePart> parts_;
  std::size_t length_ = 0;
  HugeBuffer weights_;
  std::vector<HugeBuffer> state_;
};

}  // namespace dlrun::runtime
