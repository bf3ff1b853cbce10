// Causal attention of the heads that share one head of keys, in one sample: blocks of queries against blocks
// of keys, with a softmax whose sums grow block by block (Dao et al. 2022), in f32. The scores of a block are
// all that is ever in memory; backward computes them again from each query's log-sum-exp. It splits nothing
// over threads and sums in one order, so the bits do not depend on them.
#pragma once

#include <cstdint>

#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

struct AttentionShape {
  std::int64_t positions, heads, key_heads, width;  // width: features of a head

  std::int64_t queries_per_key() const { return heads / key_heads; }
  std::int64_t in_features() const { return (heads + 2 * key_heads) * width; }
  std::int64_t out_features() const { return heads * width; }
};

/// Floats of scratch memory that one call needs.
std::size_t attention_scratch(const AttentionShape& shape);

/// The angles of rotary positions: [positions][width / 2] cosines, then as many sines. Null: there are none.
struct Rotary {
  const float* cosines = nullptr;
  const float* sines = nullptr;
};

/// Dropout of the shares of attention: of each query's row by a key of its own. Probability 0: there is none.
struct ShareDropout {
  DropoutRule rule{0, 0};
  std::int64_t first_row = 0;  // the number of the first query of head 0 among all samples' and heads'

  DropoutRule of_row(std::int64_t row) const {
    return {mix(rule.key, static_cast<std::uint64_t>(first_row + row)), rule.probability};
  }
};

/// One sample: `in` is [positions][queries, keys, values], `out` [positions][heads * width], and `log_sums`
/// [heads][positions].
struct AttentionForward {
  View out;
  ConstView in;
  float* log_sums;
  float* scratch;
  Rotary rotary;
  ShareDropout dropout = {};
};
void attention(const AttentionForward& of, const AttentionShape& shape, std::int64_t key_head);

struct AttentionBackward {
  View in_gradient;
  ConstView out_gradient, out, in;
  const float* log_sums;
  float* scratch;
  Rotary rotary;
  ShareDropout dropout = {};
};
void attention_backward(const AttentionBackward& of, const AttentionShape& shape, std::int64_t key_head);

}  // namespace dlrun::runtime::kernels
