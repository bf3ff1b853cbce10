// DevicePipeline: messages between the GPUs of the stages of one pipeline, as work on a stream of the device.
// Both sides of a message call for it; until the other side has, the stream waits. Streams are addresses, as
// in device_allreduce.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class DevicePipeline {
 public:
  virtual ~DevicePipeline() = default;
  /// Which stage this is, and of how many.
  virtual int stage() const = 0;
  virtual int stages() const = 0;
  virtual Result<void> send(const void* data, std::size_t bytes, int to, void* stream) = 0;
  virtual Result<void> receive(void* data, std::size_t bytes, int from, void* stream) = 0;
  /// `bytes` of each stage, in their order, into `all`. All stages call it.
  virtual Result<void> exchange(const void* mine, void* all, std::size_t bytes, void* stream) = 0;
  /// What `calls` asks for is done at once.
  virtual Result<void> together(const std::function<Result<void>()>& calls) = 0;
  /// As DeviceAllreduce::check().
  virtual Result<void> check() = 0;
};

struct NamedPipeline {
  std::unique_ptr<DevicePipeline> pipeline;
  std::string description;  // "NCCL 2.28.3"
};

}  // namespace dlrun::runtime
