// DeviceAllreduce: sums over the ranks of what lies in the memory of their GPUs, as work on a stream of the
// device. Whoever uses it knows what a stream is; here it is an address, so that this header needs no CUDA.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class DeviceAllreduce {
 public:
  virtual ~DeviceAllreduce() = default;
  // `count` floats at `data` on the device, in place, in the order of `stream`; all ranks call it in the same
  // order. It returns before it is done, and may be captured in a graph.
  virtual Result<void> sum(float* data, std::size_t count, void* stream) = 0;
  // Whether it adds f32 as f32: nothing is rounded on the way.
  virtual bool is_exact() const = 0;
  // Whether the ranks' batches of a step are terms of their own: all of a rank's but its last one are given
  // to keep() then, and sum() adds them to the last one's.
  virtual bool keeps() const { return false; }
  // All gradients of the rank's batch `number` of a step, from 0 on, always at the same address: in the order
  // of `stream`, not while it is captured. What is there afterwards means nothing.
  virtual Result<void> keep(std::size_t /*number*/, float* /*data*/, std::size_t /*count*/,
                            void* /*stream*/) {
    return fail(ErrorKind::internal, "this sum has one term per rank");
  }
  // Asked while the device works. An Error, by name, where a peer is gone or the sum has failed: then what
  // waits on the device for the peer ends by itself, and its results mean nothing.
  virtual Result<void> check() = 0;
};

struct NamedAllreduce {
  std::unique_ptr<DeviceAllreduce> sum;
  std::string description;  // "NCCL 2.28.3"
};

}  // namespace dlrun::runtime
