// How attention.cpp lays out a head in scratch memory: a matrix of f32 [positions][features], both counted up
// to whole blocks with zeros; copies there and back, turned by rotary positions, or turned round.
#pragma once

#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels/attention.hpp"
#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

inline constexpr std::int64_t kQueries = 48, kKeys = 64;  // of a block

constexpr std::int64_t up_to(std::int64_t count, std::int64_t whole) {
  return (count + whole - 1) / whole * whole;
}

// How a head lies in scratch memory.
struct Sizes {
  std::int64_t positions, width, padded_positions, padded_width;
  explicit Sizes(const AttentionShape& shape)
      : positions(shape.positions),
        width(shape.width),
        padded_positions(up_to(shape.positions, kKeys)),
        padded_width(up_to(shape.width, kVector)) {}
  std::int64_t matrix() const { return padded_positions * padded_width; }
};

// Where a head begins in a row of features.
struct Head {
  std::int64_t first, row;
};

struct Pieces {  // of a row of scratch memory, in the order they are asked for
  float* next;
  float* take(std::int64_t floats) {
    float* const here = next;
    next += floats;
    return here;
  }
};

// [positions][padded width] of one head times a factor; what is no feature and no position is 0.
template <class T>
DLRUN_INLINE void gather(float* to, const T* from, const Head& head, const Sizes& of, float factor) {
  for (std::int64_t t = 0; t < of.padded_positions; ++t)
    for (std::int64_t at = 0; at < of.padded_width; at += kVector) {
      Floats16 x{};
      if (t < of.positions && at < of.width)
        load_first(x, from + t * head.row + head.first + at, of.width - at);
      store(to + t * of.padded_width + at, x * factor);
    }
}

template <class T>
DLRUN_INLINE void scatter(T* to, const float* from, const Head& head, const Sizes& of, float factor) {
  for (std::int64_t t = 0; t < of.positions; ++t)
    for (std::int64_t at = 0; at < of.width; at += kVector) {
      Floats16 x;
      load(x, from + t * of.padded_width + at);
      store_first(to + t * head.row + head.first + at, x * factor, of.width - at);
    }
}

// Turns the pair (i, i + width / 2) of a position's features by its angle; direction -1 turns back.
DLRUN_INLINE void rotate(float* head, const Sizes& of, const Rotary& by, float direction) {
  if (by.cosines == nullptr) return;
  const std::int64_t half = of.width / 2;
  for (std::int64_t t = 0; t < of.positions; ++t) {
    float* const low = head + t * of.padded_width;
    float* const high = low + half;
    for (std::int64_t i = 0; i < half; i += kVector) {
      Floats16 cosine, sine, x, y;
      load_first(cosine, by.cosines + t * half + i, half - i);
      load_first(sine, by.sines + t * half + i, half - i);
      load_first(x, low + i, half - i);
      load_first(y, high + i, half - i);
      sine *= direction;
      store_first(low + i, x * cosine - y * sine, half - i);
      store_first(high + i, y * cosine + x * sine, half - i);
    }
  }
}

// Blocks of keys, each [padded width][keys].
DLRUN_INLINE void turn(float* to, const float* from, const Sizes& of) {
  for (std::int64_t block = 0; block < of.padded_positions; block += kKeys)
    for (std::int64_t key = 0; key < kKeys; key += kVector)
      for (std::int64_t i = 0; i < of.padded_width; i += kVector)
        turn_block(to + block * of.padded_width + i * kKeys + key, kKeys,
                   from + (block + key) * of.padded_width + i, of.padded_width);
}

inline float score_factor(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.width));
}

inline Head query_head(const AttentionShape& shape, std::int64_t head) {
  return {head * shape.width, shape.in_features()};
}
inline Head key_head_of(const AttentionShape& shape, std::int64_t head) {
  return {(shape.heads + head) * shape.width, shape.in_features()};
}
inline Head value_head(const AttentionShape& shape, std::int64_t head) {
  return {(shape.heads + shape.key_heads + head) * shape.width, shape.in_features()};
}
inline Head out_head(const AttentionShape& shape, std::int64_t head) {
  return {head * shape.width, shape.out_features()};
}

}  // namespace dlrun::runtime::kernels
