// Channels of one NHWC array copied between it and an array of those channels alone: what concatenations and
// grouped convolutions are made of.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

struct Slice {
  std::int64_t rows;      // pixels of all images
  std::int64_t channels;  // of the slice
  std::int64_t first;     // where they begin in the whole
  std::int64_t whole;     // channels
};
enum class Copy { fresh, sum };  // sum: added to what is there

void copy_into_whole(Device& device, void* whole, const void* part, const Slice& slice, Copy how);
void copy_out_of_whole(Device& device, void* part, const void* whole, const Slice& slice, Copy how);

}  // namespace dlrun::cuda
