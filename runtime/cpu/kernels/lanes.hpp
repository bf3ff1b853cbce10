// What kernels over rows of any length are written with: the last lanes of a row, sums over lanes, and the
// exponential, a few units in the last place off.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/base/simd.hpp"

// Before a loop of few rounds whose vectors are to stay in registers.
#if defined(__clang__)
#define DLRUN_UNROLL _Pragma("unroll")
#else
#define DLRUN_UNROLL _Pragma("GCC unroll 16")
#endif

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

/// Lanes from `count` on become 0.
DLRUN_INLINE void keep_first(Floats16& value, std::int64_t count) {
  const Ints16 lanes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Ints16 bound = Ints16{} + static_cast<std::int32_t>(count);
  const Floats16 zero{};
  value = lanes < bound ? value : zero;
}

using LaneNumbers = std::make_integer_sequence<int, static_cast<int>(kLanes)>;

// The lanes, each in the place of the one that is `Away` before it.
template <int Away, int... Number>
DLRUN_INLINE void rotate_lanes(Floats16& to, const Floats16& from, std::integer_sequence<int, Number...>) {
  to = __builtin_shufflevector(from, from, (Number + Away) % 16 ...);
}
template <int Away>
DLRUN_INLINE void add_away(Floats16& lanes) {
  Floats16 other;
  rotate_lanes<Away>(other, lanes, LaneNumbers{});
  lanes += other;
}
template <int Away>
DLRUN_INLINE void higher_away(Floats16& lanes) {
  Floats16 other;
  rotate_lanes<Away>(other, lanes, LaneNumbers{});
  lanes = lanes > other ? lanes : other;
}

DLRUN_INLINE float sum_of(const Floats16& lanes) {
  Floats16 sums = lanes;
  add_away<8>(sums);
  add_away<4>(sums);
  add_away<2>(sums);
  add_away<1>(sums);
  return sums[0];
}
DLRUN_INLINE float highest_of(const Floats16& lanes) {
  Floats16 highest = lanes;
  higher_away<8>(highest);
  higher_away<4>(highest);
  higher_away<2>(highest);
  higher_away<1>(highest);
  return highest[0];
}

// Of two rows, whose lanes are numbered through: what the upper and the lower one get.
template <int Half, int... Number>
DLRUN_INLINE void swap_between(Floats16& upper, Floats16& lower, std::integer_sequence<int, Number...>) {
  const Floats16 kept = upper;
  upper = __builtin_shufflevector(kept, lower, ((Number & Half) != 0 ? 16 + Number - Half : Number)...);
  lower = __builtin_shufflevector(kept, lower, ((Number & Half) != 0 ? 16 + Number : Number + Half)...);
}
// One step of turning a matrix of 16 x 16 round: blocks of `Half` x `Half` beside the diagonal change places.
template <int Half>
DLRUN_INLINE void swap_blocks(Floats16 (&rows)[kLanes]) {
  DLRUN_UNROLL
  for (int i = 0; i < static_cast<int>(kLanes); ++i)
    if ((i & Half) == 0) swap_between<Half>(rows[i], rows[i + Half], LaneNumbers{});
}
/// A matrix of 16 x 16 turned round; rows are so many floats apart.
DLRUN_INLINE void turn_block(float* to, std::int64_t to_row, const float* from, std::int64_t from_row) {
  Floats16 rows[kLanes];
  DLRUN_UNROLL
  for (std::size_t i = 0; i < kLanes; ++i) load(rows[i], from + static_cast<std::int64_t>(i) * from_row);
  swap_blocks<8>(rows);
  swap_blocks<4>(rows);
  swap_blocks<2>(rows);
  swap_blocks<1>(rows);
  DLRUN_UNROLL
  for (std::size_t i = 0; i < kLanes; ++i) store(to + static_cast<std::int64_t>(i) * to_row, rows[i]);
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
