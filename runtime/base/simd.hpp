// What the own kernels are written with: vectors of 16 lanes as the compiler's vector extension, so that one
// text serves every processor, and DLRUN_VERSIONS, which on x86-64 compiles a function for AVX-512, AVX2 and
// the baseline and picks one when the program is loaded; ARMv8 has NEON in its baseline. Helpers take vectors
// by reference: passing them by value would tie the calling convention to the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define DLRUN_VERSIONS  // the sanitizers are not ready when the loader asks for the processor
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define DLRUN_VERSIONS
#endif
#endif
#ifndef DLRUN_VERSIONS
#if defined(__x86_64__)
#define DLRUN_VERSIONS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DLRUN_VERSIONS
#endif
#endif
#define DLRUN_INLINE __attribute__((always_inline)) inline
#define DLRUN_LAMBDA __attribute__((always_inline))  // behind a lambda's parameters

namespace dlrun::runtime::kernels {

struct Bf16 {
  std::uint16_t bits;
};

inline constexpr std::size_t kLanes = 16;

// By lanes: f32, and integers as wide.
using Floats16 = float __attribute__((vector_size(64)));
using Ints16 = std::int32_t __attribute__((vector_size(64)));
using Words16 = std::uint32_t __attribute__((vector_size(64)));
using Halves16 = std::uint16_t __attribute__((vector_size(32)));
using Bytes16 = std::uint8_t __attribute__((vector_size(16)));

DLRUN_INLINE void load(Floats16& to, const float* from) {
  std::memcpy(&to, from, sizeof to);
}
DLRUN_INLINE void load(Floats16& to, const Bf16* from) {
  Halves16 halves;
  std::memcpy(&halves, from, sizeof halves);
  const Words16 wide = __builtin_convertvector(halves, Words16) << 16;
  std::memcpy(&to, &wide, sizeof to);
}
DLRUN_INLINE void store(float* to, const Floats16& from) {
  std::memcpy(to, &from, sizeof from);
}
/// Rounds to the nearest, to even on a tie.
DLRUN_INLINE void store(Bf16* to, const Floats16& from) {
  Words16 bits;
  std::memcpy(&bits, &from, sizeof bits);
  bits += 0x7fffU + ((bits >> 16) & 1U);
  const Halves16 halves = __builtin_convertvector(bits >> 16, Halves16);
  std::memcpy(to, &halves, sizeof halves);
}

/// Two rows of f32 as bf16, interleaved: even 0, odd 0, even 1, ...
DLRUN_INLINE void store_interleaved(Bf16* to, const Floats16& even, const Floats16& odd) {
  Words16 low, high;
  std::memcpy(&low, &even, sizeof low);
  std::memcpy(&high, &odd, sizeof high);
  low += 0x7fffU + ((low >> 16) & 1U);
  high += 0x7fffU + ((high >> 16) & 1U);
  const Words16 pairs = (low >> 16) | (high & 0xffff0000U);
  std::memcpy(static_cast<void*>(to), &pairs, sizeof pairs);
}

/// For values that are bf16 already: nothing to round.
DLRUN_INLINE void store_exact(float* to, const Floats16& from) {
  store(to, from);
}
DLRUN_INLINE void store_exact(Bf16* to, const Floats16& from) {
  Words16 bits;
  std::memcpy(&bits, &from, sizeof bits);
  const Halves16 halves = __builtin_convertvector(bits >> 16, Halves16);
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

// The bits of an element, for moving without arithmetic, and as many bits wide a argmax's number.
template <class T>
struct Raw;
template <>
struct Raw<float> {
  using Lanes = Words16;
};
template <>
struct Raw<Bf16> {
  using Lanes = Halves16;
};

DLRUN_INLINE float to_float(float value) {
  return value;
}
DLRUN_INLINE float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}
DLRUN_INLINE void set(float& to, float value) {
  to = value;
}
DLRUN_INLINE void set(Bf16& to, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fffU + ((bits >> 16) & 1U);
  to.bits = static_cast<std::uint16_t>(bits >> 16);
}

}  // namespace dlrun::runtime::kernels
