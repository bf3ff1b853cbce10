// The sizes of a pooling, for the device. 32 bits are enough: a tensor has less than 2^31 packs (fits() sees
// to it), and divisions of 64 bits cost more than the memory does.
#pragma once

#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {

struct Sizes {
  int groups, in_height, in_width, height, width, window, stride, padding;
  Sizes(const DlrunCudaNode& node, int vector)
      : groups(static_cast<int>(node.channels) / vector),
        in_height(static_cast<int>(node.in_height)),
        in_width(static_cast<int>(node.in_width)),
        height(static_cast<int>(node.height)),
        width(static_cast<int>(node.width)),
        window(static_cast<int>(node.window)),
        stride(static_cast<int>(node.stride)),
        padding(static_cast<int>(node.padding)) {}
};

inline void check_fits(const Device& device, const DlrunCudaNode& node, std::int64_t vector) {
  const std::int64_t area = std::max(node.in_height * node.in_width, node.height * node.width);
  if (device.batch * area * node.channels / vector > INT32_MAX)
    throw Failure("a batch of more than 2^31 numbers to pool is not built for GPUs");
}

}  // namespace dlrun::cuda
