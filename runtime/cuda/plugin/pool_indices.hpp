// Maximum pooling of V channels at once: the highest number of a window, the first of equals, and which pixel
// it was.
#pragma once

#include "runtime/cuda/plugin/pack.hpp"
#include "runtime/cuda/plugin/window.hpp"

namespace dlrun::cuda {

constexpr std::uint8_t kNoIndex = 255;  // a window whose gradient goes nowhere
constexpr std::int64_t kMaxWindow = 15;

inline void check_pooling(const Device& device, const DlrunCudaNode& node, std::int64_t vector) {
  if (node.window > kMaxWindow)
    throw Failure("a pooling window of more than 15 pixels is not built for GPUs");
  check_fits(device, node, vector);
}

template <int V>
struct Maxima {
  float best[V];
  Pack<std::uint8_t, V> pixel;

  __device__ Maxima() {
    for (int k = 0; k < V; ++k) best[k] = -INFINITY, pixel.of[k] = kNoIndex;
  }
  // Whether `number` is the highest so far.
  __device__ bool see(int k, float number, int which) {
    if (pixel.of[k] != kNoIndex && !(number > best[k])) return false;
    best[k] = number;
    pixel.of[k] = static_cast<std::uint8_t>(which);
    return true;
  }
  // A ReLU behind: what it stops has no index.
  template <class T>
  __device__ Pack<T, V> values(bool relu) {
    Pack<T, V> out;
    for (int k = 0; k < V; ++k) {
      if (relu && !(best[k] > 0)) best[k] = 0, pixel.of[k] = kNoIndex;
      put(out.of[k], best[k]);
    }
    return out;
  }
};

// Adds what the windows whose maximum is `pixel` pass back to it.
template <class S, class Place, class T, int V>
__device__ void gather_by_argmax(const S& s, const Place& pixel, const Pack<T, V>* grad,
                                 const Pack<std::uint8_t, V>* argmax, float (&sum)[V]) {
  for_windows(s, pixel, [&](const auto& reach) {
    const Pack<std::uint8_t, V> index = argmax[reach.pack];
    const Pack<T, V> dy = grad[reach.pack];
    for (int k = 0; k < V; ++k)
      if (index.of[k] == reach.pixel) sum[k] += number(dy.of[k]);
  });
}

}  // namespace dlrun::cuda
