// The bound of a layer's first weights, on any device.
#pragma once

#include <cmath>
#include <cstdint>

namespace dlrun::runtime {

// Of a uniform distribution of that standard deviation; where that is 0, PyTorch's default, Kaiming uniform
// with a = sqrt(5), which comes to 1 / sqrt(fan in).
inline float init_bound(float init_std, std::int64_t fan_in) {
  return init_std > 0 ? init_std * std::sqrt(3.0F) : 1.0F / std::sqrt(static_cast<float>(fan_in));
}

}  // namespace dlrun::runtime
