// DeviceCalls: what sums on devices need of a device beside NCCL: memory, copies, a call of the host, and the
// loops that convert numbers to a communication dtype and back. Behind it is the plug-in of the GPUs or, in
// tests, the host itself. Streams are addresses, as in device_allreduce.hpp; all but memory may be captured
// in a graph.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/base/comm_dtype.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

class DeviceCalls {
 public:
  enum class Place { device, pinned };  // pinned: the host's, which the device reaches
  // The terms of a sum: `own` as f32, those of the others in the dtype, one behind the other every
  // `stride` numbers. The place of `own` among these is empty.
  struct Terms {
    const float* own;
    const void* others;
    std::size_t stride;
    int own_place, places;
  };

  virtual ~DeviceCalls() = default;
  virtual Result<void*> take(Place place, std::size_t bytes) = 0;
  virtual void release(Place place, void* memory) = 0;
  virtual Result<void> copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  // The function runs on a thread of the driver's, which it may hold; it makes no call of the device.
  virtual Result<void> call_host(void (*function)(void*), void* context, void* stream) = 0;
  virtual Result<void> pack(CommDtype dtype, void* to, const float* from, std::size_t count,
                            void* stream) = 0;
  virtual Result<void> unpack(CommDtype dtype, float* to, const void* from, std::size_t count,
                              void* stream) = 0;
  // In f32; `to` may be one of the two.
  virtual Result<void> add(float* to, const float* left, const float* right, std::size_t count,
                           void* stream) = 0;
  // Adds in f32, in the order of the places, and packs the sum.
  virtual Result<void> pack_sum(CommDtype dtype, void* to, const Terms& terms, std::size_t count,
                                void* stream) = 0;
};

// Memory of a device that grows. What it was is kept to the end: a captured graph may use it still.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceCalls> calls, DeviceCalls::Place place)
      : calls_(std::move(calls)), place_(place) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    for (void* const block : blocks_) calls_->release(place_, block);
  }
  // Not while a stream is captured, unless it was asked for as much before.
  Result<void*> at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      blocks_.push_back(TRY(calls_->take(place_, bytes)));
      bytes_ = bytes;
    }
    return blocks_.back();
  }

 private:
  std::shared_ptr<DeviceCalls> calls_;
  DeviceCalls::Place place_;
  std::vector<void*> blocks_;
  std::size_t bytes_ = 0;
};

}  // namespace dlrun::runtime
