// Numbers of neighbouring channels that one thread reads and writes at once: sixteen bytes where the channels
// divide so, else one number.
#pragma once

#include <algorithm>

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

template <class T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  static constexpr int kSize = V;
  T of[V];
};

// body(a pack of the type that suits `channels`).
template <class T, class Body>
void by_pack(std::int64_t channels, const Body& body) {
  constexpr int kMax = 16 / sizeof(T);
  if (channels % kMax == 0)
    body(Pack<T, kMax>{});
  else
    body(Pack<T, 1>{});
}

#ifdef __CUDACC__
// body(a pack, how many) for an array of the plan's type that is read number by number.
template <class Body>
void by_packs(const Device& device, std::int64_t elements, const Body& body) {
  by_type(device, [&](auto zero) {
    by_pack<decltype(zero)>(elements, [&](auto pack) { body(pack, elements / decltype(pack)::kSize); });
  });
}
#endif

// That packs can be counted in 32 bits, in the input and in the output.
inline void check_fits(const Device& device, const DlrunCudaNode& node, std::int64_t vector) {
  const std::int64_t area = std::max(node.in_height * node.in_width, node.height * node.width);
  if (device.batch * area * node.channels / vector > INT32_MAX)
    throw Failure("a batch of more than 2^31 numbers to pool is not built for GPUs");
}

}  // namespace dlrun::cuda
