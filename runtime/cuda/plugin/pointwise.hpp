// Maps over two or three arrays of the plan's type: what ReLU, sums, bias and dropout are made of.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// to[i] = (adds ? to[i] : 0) + grad[i] where mask[i] > 0 (mask may be null).
template <class T>
void pass_gradient(Device& device, T* to, const T* grad, const T* mask, std::int64_t count, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float passed = mask == nullptr || number(mask[i]) > 0 ? number(grad[i]) : 0.0F;
    put(to[i], (adds ? number(to[i]) : 0.0F) + passed);
  });
}

inline void pass_gradient(Device& device, Tensor& in, const Tensor& out, const void* mask) {
  if (in.gradient == nullptr) return;
  const bool adds = claim(in);
  if (device.half())
    pass_gradient(device, static_cast<Bf16*>(in.gradient), static_cast<const Bf16*>(out.gradient),
                  static_cast<const Bf16*>(mask), out.elements, adds);
  else
    pass_gradient(device, static_cast<float*>(in.gradient), static_cast<const float*>(out.gradient),
                  static_cast<const float*>(mask), out.elements, adds);
}

}  // namespace dlrun::cuda
