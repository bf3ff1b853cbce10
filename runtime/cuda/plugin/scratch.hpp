// Scratch: memory that is as large as the largest use of it so far. What is in it is lost where it grows.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

class Scratch {
 public:
  enum class On { device, host };
  explicit Scratch(On on = On::device) : on_(on) {}

  void* of(std::size_t bytes, const char* what) {
    if (bytes <= bytes_ && memory_ != nullptr) return at_;
    memory_.reset();
    memory_ = std::make_unique<Memory>();
    at_ = on_ == On::device ? memory_->device(bytes, what) : memory_->pinned(bytes);
    bytes_ = bytes;
    return at_;
  }
  void* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  On on_;
  std::unique_ptr<Memory> memory_;
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace dlrun::cuda
