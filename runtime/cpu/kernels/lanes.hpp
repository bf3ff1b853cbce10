// What kernels over rows of any length are written with: the last lanes of a row, sums over lanes, and the
// exponential, a few units in the last place off.
#pragma once

#include <cstdint>

#include "runtime/base/simd.hpp"

namespace dlrun::runtime::kernels {

inline constexpr std::int64_t kVector = kLanes;

/// Up to 16 numbers; the lanes behind are 0.
template <class T>
DLRUN_INLINE void load_first(Floats16& to, const T* from, std::int64_t count) {
  if (count >= kVector) return load(to, from);
  to = Floats16{};
  for (std::int64_t lane = 0; lane < count; ++lane) to[lane] = to_float(from[lane]);
}
template <class T>
DLRUN_INLINE void store_first(T* to, const Floats16& from, std::int64_t count) {
  if (count >= kVector) return store(to, from);
  for (std::int64_t lane = 0; lane < count; ++lane) set(to[lane], from[lane]);
}

DLRUN_INLINE float sum_of(const Floats16& lanes) {
  float parts[kLanes];
  store(parts, lanes);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) parts[lane] += parts[lane + half];
  return parts[0];
}
DLRUN_INLINE float highest_of(const Floats16& lanes) {
  float parts[kLanes];
  store(parts, lanes);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane)
      parts[lane] = parts[lane] > parts[lane + half] ? parts[lane] : parts[lane + half];
  return parts[0];
}

/// x = e^x: 2^n times a polynomial of what is left. Below -87 it is as at -87, 1e-38.
DLRUN_INLINE void exponential(Floats16& x) {
  const Floats16 high = Floats16{} + 88.3F, low = Floats16{} - 87.3F;
  x = x > high ? high : x;
  x = x < low ? low : x;
  const Floats16 shifted = x * 1.44269504F + 12582912.0F;  // the sum's last bits are the whole number n
  const Floats16 whole = shifted - 12582912.0F;
  const Floats16 rest = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Floats16 value = rest * 1.9875691500e-4F + 1.3981999507e-3F;
  value = value * rest + 8.3334519073e-3F;
  value = value * rest + 4.1665795894e-2F;
  value = value * rest + 1.6666665459e-1F;
  value = value * rest + 5.0000001201e-1F;
  value = value * (rest * rest) + rest + 1.0F;
  Words16 bits, exponents;
  std::memcpy(&bits, &value, sizeof bits);
  std::memcpy(&exponents, &shifted, sizeof exponents);
  bits += exponents << 23;
  std::memcpy(&x, &bits, sizeof x);
}

}  // namespace dlrun::runtime::kernels
