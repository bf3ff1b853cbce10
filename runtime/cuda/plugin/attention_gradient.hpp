// The warpgroups that compute the gradient of attention, by tiles of 128 queries and 128 keys: the shares
// from the scores, their gradients, and the sums of dK and dV in registers, of dQ in memory. See
// hopper_attention.cu.
#pragma once

#include "runtime/cuda/plugin/attention_tiles.hpp"

namespace dlrun::cuda::attention {

// A tile as the products that were begun for it know it.
struct Tile {
  int number = -1;  // in the block's order
  int i = 0, j = 0, row = 0, column = 0;
  unsigned keys_at = 0;
  bool ends_keys = false, is_of_last_head = false;
  __device__ unsigned ring() const { return static_cast<unsigned>(number) & 1; }
  __device__ unsigned parity() const { return static_cast<unsigned>(number) >> 1 & 1; }
};

// A thread of a warpgroup that computes. Products leave it rows lane / 4 and 8 further of its warp's 16, and
// of these the columns lane % 4 * 2 and the next one of every 8.
class Computing {
 public:
  __device__ Computing(Room& room, const CUtensorMap& to, float* sums, const Sizes& of, float scale)
      : room_(room),
        to_(to),
        sums_(sums),
        of_(of),
        scale_(scale),
        group_(static_cast<int>(threadIdx.x) / kGroup - 1),
        thread_(static_cast<int>(threadIdx.x) % kGroup),
        warp_(thread_ / 32),
        lane_(thread_ % 32) {}

  __device__ void run() {
    Sums sums;
    Tile before;
    int number = 0;
    hopper::await(&room_.keys_full[0], 0);
    hopper::await(&room_.queries_full[0], 0);
    begin_rows(sums.scores, room_.keys[0], room_.queries[0]);
    for (int head = static_cast<int>(blockIdx.x); head < of_.all_heads();
         head += static_cast<int>(gridDim.x)) {
      Tile tile;
      tile.row = head / of_.heads * of_.length, tile.column = head % of_.heads * kWidth;
      tile.is_of_last_head = head + static_cast<int>(gridDim.x) >= of_.all_heads();
      for (tile.j = 0; tile.j < of_.tiles(); ++tile.j) {
        for (tile.i = tile.j; tile.i < of_.tiles(); ++tile.i) {
          tile.number = number++, tile.keys_at = keys_.at, tile.ends_keys = tile.i + 1 == of_.tiles();
          take_tile(sums, tile, before);
          before = tile;
        }
        store_keys(sums.of_keys, sums.of_values, before);
      }
    }
    hopper::await_products<0>();
    begin_queries(sums.of_queries, before);
    hopper::await_products<0>();
    hopper::pin(sums.of_queries);
    take_queries(sums.of_queries, before);
    if (thread_ == 0) hopper::await_stores();
  }

 private:
  struct Sums {
    float scores[64], of_keys[32], of_values[32], of_queries[32];
  };

  // A tile whose scores were begun; it begins those of the next one, and takes dQ of the one before.
  __device__ void take_tile(Sums& sums, const Tile& tile, const Tile& before) {
    const unsigned at = queries_.at;
    const hopper::Sum from = tile.i > tile.j ? hopper::Sum::goes_on : hopper::Sum::fresh;
    std::uint32_t shares[32], of_scores[32];
    find_of_scores(sums.scores, shares, of_scores, tile, at);
    begin_sum(sums.of_values, shares, room_.grads[at], from);
    leave_of_scores(of_scores, tile);
    begin_sum(sums.of_keys, of_scores, room_.queries[at], from);
    begin_queries(sums.of_queries, before);
    hopper::await_products<2>();  // of_values
    hopper::pin(shares), hopper::pin(sums.of_values);
    const bool is_early = tile.ends_keys && before.ends_keys;
    if (is_early) end_keys_early(before);
    await_next(tile);
    begin_rows(sums.scores, room_.keys[keys_.at], room_.queries[queries_.at]);
    hopper::await_products<2>();  // of_keys
    hopper::pin(sums.of_keys), hopper::pin(of_scores);
    if (thread_ == 0) hopper::arrive(&room_.queries_empty[at]);
    hopper::await_products<1>();
    hopper::pin(sums.of_queries);
    if (before.number < 0) return;
    if (thread_ == 0 && before.ends_keys && !is_early) hopper::arrive(&room_.keys_empty[before.keys_at]);
    take_queries(sums.of_queries, before);
  }

  // Behind the last tile nobody comes: its scores are those of what is there, and nobody looks at them.
  __device__ void await_next(const Tile& tile) {
    queries_.next();
    if (tile.ends_keys) keys_.next();
    if (tile.is_of_last_head && tile.ends_keys && tile.j + 1 == of_.tiles()) return;
    if (tile.ends_keys) hopper::await(&room_.keys_full[keys_.at], keys_.parity);
    hopper::await(&room_.queries_full[queries_.at], queries_.parity);
  }

  // [64 keys][128 queries]: this group's rows of one tile times all of another.
  __device__ void begin_rows(float (&out)[64], const Bf16* own, const Bf16* other) const {
    const std::uint64_t left = hopper::descriptor(own + group_ * kHalf * kWidth),
                        right = hopper::descriptor(other);
    hopper::pin(out);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < kWidth / 16; ++k)
      hopper::multiply_rows(out, left + k * hopper::kAlongRow, right + k * hopper::kAlongRow,
                            k == 0 ? hopper::Sum::fresh : hopper::Sum::goes_on);
    hopper::end_products();
  }

  // [64 keys][features] += [64 keys][128 queries] x [128 queries][features].
  __device__ void begin_sum(float (&sum)[32], std::uint32_t (&left)[32], const Bf16* tile,
                            hopper::Sum from) const {
    const std::uint64_t right = hopper::descriptor(tile);
    hopper::pin(sum), hopper::pin(left);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k)
      hopper::multiply_registers(sum, left + 4 * k, right + k * hopper::kAlongRows,
                                 k == 0 ? from : hopper::Sum::goes_on);
    hopper::end_products();
  }

  // dQ of 64 queries, once both groups have left the gradient of their scores. Of no tile: of what is there.
  __device__ void begin_queries(float (&sum)[32], const Tile& tile) const {
    if (tile.number >= 0) hopper::await(&room_.of_scores_full[tile.ring()], tile.parity());
    const std::uint64_t left = hopper::descriptor(room_.of_scores[tile.ring()][group_]),
                        right = hopper::descriptor(room_.keys[tile.keys_at]);
    hopper::pin(sum);
    hopper::begin_products();
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k)
      hopper::multiply_turned(sum, left + k * hopper::kAlongRows, right + k * hopper::kAlongRows,
                              k == 0 ? hopper::Sum::fresh : hopper::Sum::goes_on);
    hopper::end_products();
  }

  // From the scores, whose products are begun: the shares, and the gradient of the scores, both in bf16.
  __device__ void find_of_scores(float (&scores)[64], std::uint32_t (&shares)[32],
                                 std::uint32_t (&of_scores)[32], const Tile& tile, unsigned at) const {
    constexpr int kEarly = 8;  // logarithms read while the products run
    const float* const logarithms = room_.logarithms[at] + lane_ % 4 * 2;
    const float* const along = room_.along[at] + lane_ % 4 * 2;
    float2 early[kEarly];
#pragma unroll
    for (int n = 0; n < kEarly; ++n) early[n] = *reinterpret_cast<const float2*>(logarithms + n * 8);
    hopper::await_products<0>();
    hopper::pin(scores);
    float of_shares[64], share[64];
    begin_rows(of_shares, room_.values[tile.keys_at], room_.grads[at]);
    const float scale = scale_ * kLog2E;
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      const float2 less =
          n < kEarly ? early[n % kEarly] : *reinterpret_cast<const float2*>(logarithms + n * 8);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        share[4 * n + k] = hopper::power(scores[4 * n + k] * scale - (k % 2 == 0 ? less.x : less.y));
    }
    if (tile.i == tile.j) mask(share);
    hopper::await_products<0>();
    hopper::pin(of_shares);
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      const float2 less = *reinterpret_cast<const float2*>(along + n / 2 * 8);
      of_scores[n] = pack(share[2 * n] * (of_shares[2 * n] - less.x),
                          share[2 * n + 1] * (of_shares[2 * n + 1] - less.y));
      shares[n] = pack(share[2 * n], share[2 * n + 1]);
    }
  }

  // Of a tile on the diagonal: no query sees a key behind it.
  __device__ void mask(float (&share)[64]) const {
    const int key = group_ * kHalf + warp_ * 16 + lane_ / 4 - lane_ % 4 * 2;
#pragma unroll
    for (int n = 0; n < 64; ++n)
      if (n / 4 * 8 + n % 2 < key + n / 2 % 2 * 8) share[n] = 0;
  }

  // The address of a row of 16 of this warp's, with the 8 numbers that a thread stores the address of.
  __device__ char* row_of(Bf16* tile, int first_row, int chunk) const {
    const int row = first_row + warp_ * 16 + lane_ / 8 % 2 * 8 + lane_ % 8;
    const int at = chunk + lane_ / 16;
    return reinterpret_cast<char*>(tile) + at / 8 * kTileBytes + row * 128 + (at % 8 ^ row % 8) * 16;
  }

  __device__ void leave_of_scores(std::uint32_t (&of_scores)[32], const Tile& tile) {
    hopper::await(&room_.of_scores_empty[tile.ring()], tile.parity() ^ 1);
    if (has_staged_) begin_staging();
    has_staged_ = false;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      hopper::store_squares(row_of(room_.of_scores[tile.ring()][0], group_ * kHalf, 2 * k),
                            of_scores + 4 * k);
    hopper::show_stores();
    hopper::arrive(&room_.of_scores_full[tile.ring()]);
  }

  // The next keys come to where those of the tile before lie, which are thus waited for first.
  __device__ void end_keys_early(const Tile& before) const {
    hopper::await_products<0>();
    if (thread_ == 0) hopper::arrive(&room_.keys_empty[before.keys_at]);
  }

  // Adds the products of a tile to those of its queries with earlier keys; the last ones are stored.
  __device__ void take_queries(float (&of_queries)[32], const Tile& tile) {
    if (thread_ == 0) hopper::arrive(&room_.of_scores_empty[tile.ring()]);
    const bool is_near = tile.i + 1 == of_.tiles();
    float* const place = is_near ? room_.last_sums : sums_ + tile.i * kTileNumbers;
    float4* const sums = reinterpret_cast<float4*>(place + group_ * kHalf * kWidth) + thread_;
    if (tile.j > 0 && (is_near || tile.i == tile.j)) {
#pragma unroll
      for (int n = 0; n < 8; ++n) {
        const float4 four = is_near ? sums[n * kGroup] : __ldcg(&sums[n * kGroup]);
        of_queries[4 * n] += four.x, of_queries[4 * n + 1] += four.y;
        of_queries[4 * n + 2] += four.z, of_queries[4 * n + 3] += four.w;
      }
    }
    if (tile.i == tile.j) return store_queries(of_queries, tile);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const float* const four = of_queries + 4 * n;
      if (tile.j == 0 || is_near)
        sums[n * kGroup] = make_float4(four[0], four[1], four[2], four[3]);
      else
        hopper::add_four(&sums[n * kGroup], four);
    }
  }

  // Results go to memory by way of this group's rows of a buffer of `of_scores` that nobody reads any more.
  __device__ void begin_staging() const {
    if (thread_ == 0) hopper::await_stores_read();
    hopper::synchronize(2 + group_, kGroup);
  }
  __device__ void stage(const float (&numbers)[32], float factor, Bf16* tile) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      std::uint32_t four[4];
#pragma unroll
      for (int n = 0; n < 4; ++n)
        four[n] = pack(numbers[8 * k + 2 * n] * factor, numbers[8 * k + 2 * n + 1] * factor);
      hopper::store_squares(row_of(tile, group_ * kHalf, 2 * k), four);
    }
  }
  __device__ void end_staging() {
    hopper::show_stores();
    hopper::synchronize(2 + group_, kGroup);
    has_staged_ = true;
  }
  __device__ void send(const Bf16* tile, int column, int row) const {
    hopper::store_tile(to_, tile + group_ * kHalf * kWidth, column, row + group_ * kHalf,
                       hopper::Keep::shortly);
  }

  __device__ void store_queries(const float (&of_queries)[32], const Tile& tile) {
    Bf16* const room = room_.of_scores[tile.ring()][0];
    hopper::await(&room_.of_scores_empty[tile.ring()], tile.parity());
    begin_staging();
    stage(of_queries, scale_, room);
    end_staging();
    if (thread_ == 0) send(room, tile.column, tile.row + tile.i * kTile), hopper::end_stores();
  }

  // `tile`: the last one of these keys. The buffer of the one before it is free once both have its dQ.
  __device__ void store_keys(const float (&of_keys)[32], const float (&of_values)[32], const Tile& tile) {
    Tile before;
    before.number = tile.number - 1;
    if (tile.number > 0) hopper::await(&room_.of_scores_empty[before.ring()], before.parity());
    Bf16 *const first = room_.of_scores[before.ring()][0], *const second = room_.of_scores[before.ring()][1];
    begin_staging();
    stage(of_keys, scale_, first), stage(of_values, 1, second);
    end_staging();
    if (thread_ != 0) return;
    send(first, of_.features + tile.column, tile.row + tile.j * kTile);
    send(second, 2 * of_.features + tile.column, tile.row + tile.j * kTile);
    hopper::end_stores();
  }

  Room& room_;
  const CUtensorMap& to_;
  float* sums_;
  Sizes of_;
  float scale_;
  int group_, thread_, warp_, lane_;
  Turn keys_, queries_;  // of the tile whose scores are begun
  bool has_staged_ = false;
};

}  // namespace dlrun::cuda::attention
