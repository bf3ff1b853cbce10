// DeviceGroup: what the engines of some ranks ask of each other about numbers in the memory of their GPUs:
// the ranks of a data group whose optimizer state is divided, or those of a tensor group. All is work on a
// stream of the device, as in device_allreduce.hpp; all ranks of a group make the same calls in the same
// order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

enum class DeviceNumber { f32, bf16 };

class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  /// Sums in place: the same bits on all ranks.
  virtual Result<void> sum(void* data, std::size_t count, DeviceNumber type, void* stream) = 0;
  /// Rank r's part of `data` begins at borders[r] and ends at borders[r + 1]. Each rank's own part becomes
  /// the sum; the other parts stay.
  virtual Result<void> reduce_scatter(float* data, std::span<const std::size_t> borders, void* stream) = 0;
  /// `count` numbers for each rank at `data`; the sum of this rank's goes to `mine`, which may be in their
  /// place.
  virtual Result<void> reduce_scatter(const void* data, void* mine, std::size_t count, DeviceNumber type,
                                      void* stream) = 0;
  /// Every rank's own part of `data` comes to all.
  virtual Result<void> allgather(float* data, std::span<const std::size_t> borders, void* stream) = 0;
  /// `bytes` of each rank, in the order of the ranks, into `all`; `mine` may be in its place there.
  virtual Result<void> exchange(const void* mine, void* all, std::size_t bytes, void* stream) = 0;
  /// What `calls` asks for is done at once.
  virtual Result<void> together(const std::function<Result<void>()>& calls) = 0;
  /// As DeviceAllreduce::check().
  virtual Result<void> check() = 0;
};

struct NamedGroup {
  std::unique_ptr<DeviceGroup> group;
  std::string description;  // "NCCL 2.28.3"
};

}  // namespace dlrun::runtime
