// What a block of the gradient of attention has in shared memory, and the thread that copies tiles there, as
// far ahead as there is room. See hopper_attention.cu.
#pragma once

#include "runtime/cuda/plugin/device.hpp"
#include "runtime/cuda/plugin/hopper.hpp"

namespace dlrun::cuda::attention {

constexpr int kTile = 128, kWidth = 64;  // queries and keys of a tile, features of a head
constexpr int kHalf = kTile / 2;         // keys of a warpgroup, and queries whose gradient it sums
constexpr int kGroup = 128;              // threads of a warpgroup
constexpr int kComputing = 2 * kGroup, kThreads = kComputing + kGroup;
constexpr int kTileNumbers = kTile * kWidth, kTileBytes = kTileNumbers * 2;
constexpr float kLog2E = 1.4426950408889634F;

struct Sizes {
  int batch, length, heads, features;
  __host__ __device__ int all_heads() const { return batch * heads; }
  __host__ __device__ int tiles() const { return length / kTile; }
};

// What a block has in shared memory. Pairs are rings of two.
struct Room {
  Bf16 keys[2][kTileNumbers], values[2][kTileNumbers];
  Bf16 queries[2][kTileNumbers], grads[2][kTileNumbers];
  Bf16 of_scores[2][2][kTile * kHalf];  // [half of the queries][key][query]
  float logarithms[2][kTile], along[2][kTile];
  float last_sums[kTileNumbers];  // dQ of the last tile of queries
  std::uint64_t keys_full[2], keys_empty[2], queries_full[2], queries_empty[2];
  std::uint64_t of_scores_full[2], of_scores_empty[2];
};

// A place in a ring of two, and the parity of its barriers.
struct Turn {
  unsigned at = 0, parity = 0;
  __device__ void next() {
    at ^= 1;
    if (at == 0) parity ^= 1;
  }
};

struct Arrays {
  const float *logarithms, *along;  // of each query
  float* sums;                      // of dQ, by block
};

inline __device__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

// One thread's: all tiles of the block's heads, as far ahead as there is room.
inline __device__ void copy_ahead(Room& room, const CUtensorMap& packed, const CUtensorMap& grads,
                                  const Arrays& arrays, const Sizes& of) {
  using hopper::Keep;
  Turn keys, queries;
  for (int head = static_cast<int>(blockIdx.x); head < of.all_heads(); head += static_cast<int>(gridDim.x)) {
    const int row = head / of.heads * of.length, column = head % of.heads * kWidth;
    for (int j = 0; j < of.tiles(); ++j) {
      std::uint64_t* const of_keys = &room.keys_full[keys.at];
      hopper::await(&room.keys_empty[keys.at], keys.parity ^ 1);
      hopper::arrive_expecting(of_keys, 2 * kTileBytes);
      hopper::copy_tile(room.keys[keys.at], packed, of.features + column, row + j * kTile, of_keys,
                        Keep::shortly);
      hopper::copy_tile(room.values[keys.at], packed, 2 * of.features + column, row + j * kTile, of_keys,
                        Keep::shortly);
      keys.next();
      for (int i = j; i < of.tiles(); ++i) {
        std::uint64_t* const full = &room.queries_full[queries.at];
        const Keep keep = i == j ? Keep::shortly : Keep::long_;  // further keys need it, too
        const std::int64_t first = static_cast<std::int64_t>(head) * of.length + i * kTile;
        hopper::await(&room.queries_empty[queries.at], queries.parity ^ 1);
        hopper::arrive_expecting(full, 2 * kTileBytes + 2 * kTile * sizeof(float));
        hopper::copy_tile(room.queries[queries.at], packed, column, row + i * kTile, full, keep);
        hopper::copy_bytes(room.logarithms[queries.at], arrays.logarithms + first, kTile * sizeof(float),
                           full);
        hopper::copy_tile(room.grads[queries.at], grads, column, row + i * kTile, full, keep);
        hopper::copy_bytes(room.along[queries.at], arrays.along + first, kTile * sizeof(float), full);
        queries.next();
      }
    }
  }
}

}  // namespace dlrun::cuda::attention
