// See attention.hpp. A head's queries, keys and values are copied into matrices of whole vectors first; keys
// and, in backward, values also turned, since block_product() wants the columns of its second matrix side by
// side.
#include "runtime/cpu/kernels/attention.hpp"

#include "runtime/cpu/kernels/attention_heads.hpp"
#include "runtime/cpu/kernels/block_product.hpp"
#include "runtime/cpu/kernels/survivors.hpp"

namespace dlrun::runtime::kernels {

namespace {

struct Block {
  std::int64_t first_query, queries, first_key;
  // Keys that some query of the block may read, and the same as whole vectors.
  std::int64_t keys() const { return std::min(kKeys, first_query + queries - first_key); }
  std::int64_t padded_keys() const { return up_to(keys(), kVector); }
  // The keys of a row that its query may read.
  std::int64_t seen(std::int64_t row) const { return std::min(kKeys, first_query + row + 1 - first_key); }
};

// scores[queries][kKeys] of a block, or the products of gradients and values.
DLRUN_INLINE void products(float* to, const float* queries, const float* turned, const Block& at,
                           const Sizes& of) {
  block_product({to, kKeys}, {queries + at.first_query * of.padded_width, of.padded_width},
                {turned + at.first_key * of.padded_width, kKeys}, {at.queries, at.padded_keys(), of.width},
                Sum::anew);
}

// The row's scores become e^(score - shift), 0 where the query may not read; their sum.
DLRUN_INLINE float shares(float* row, const Block& at, std::int64_t seen, float shift) {
  Floats16 sums{};
  for (std::int64_t i = 0; i < at.padded_keys(); i += kVector) {
    Floats16 x{};
    if (i < seen) {
      load(x, row + i);
      x -= shift;
      exponential(x);
      if (seen - i < kVector) keep_first(x, seen - i);
      sums += x;
    }
    store(row + i, x);
  }
  return sum_of(sums);
}

DLRUN_INLINE float highest_seen(const float* row, std::int64_t seen, float highest) {
  std::int64_t i = 0;
  if (seen >= kVector) {
    Floats16 lanes;
    load(lanes, row);
    for (; i + kVector <= seen; i += kVector) {
      Floats16 x;
      load(x, row + i);
      lanes = lanes > x ? lanes : x;
    }
    highest = std::max(highest, highest_of(lanes));
  }
  for (; i < seen; ++i) highest = std::max(highest, row[i]);
  return highest;
}

DLRUN_INLINE void scale_row(float* row, std::int64_t width, float factor) {
  for (std::int64_t i = 0; i < width; i += kVector) {
    Floats16 x;
    load(x, row + i);
    store(row + i, x * factor);
  }
}

struct Running {
  float highest[kQueries], sum[kQueries];
};

DLRUN_INLINE void soften(float* scores, float* out, const Block& at, const Sizes& of, Running& so_far) {
  for (std::int64_t row = 0; row < at.queries; ++row) {
    const std::int64_t seen = at.seen(row);
    float* const of_row = scores + row * kKeys;
    if (seen <= 0) {
      std::fill_n(of_row, at.padded_keys(), 0.0F);
      continue;
    }
    const float highest = highest_seen(of_row, seen, so_far.highest[row]);
    if (at.first_key > 0 && highest > so_far.highest[row]) {
      const float shrinks = std::exp(so_far.highest[row] - highest);
      so_far.sum[row] *= shrinks;
      scale_row(out + row * of.padded_width, of.padded_width, shrinks);
    }
    so_far.highest[row] = highest;
    so_far.sum[row] += shares(of_row, at, seen, highest);
  }
}

// Dropout of a head's shares; `first_row`: the number of its first query there.
struct HeadDropout {
  ShareDropout of;
  std::int64_t first_row;

  bool is_on() const { return of.rule.probability > 0; }
  Survivors of_query(std::int64_t query) const { return Survivors(of.of_row(first_row + query)); }
};

DLRUN_INLINE void drop_shares(float* shares, const Block& at, const HeadDropout& dropout) {
  for (std::int64_t row = 0; row < at.queries; ++row) {
    const Survivors survivors = dropout.of_query(at.first_query + row);
    for (std::int64_t i = 0; i < at.padded_keys(); i += kVector) {
      Floats16 x;
      load(x, shares + row * kKeys + i);
      survivors.drop(x, static_cast<std::uint32_t>(at.first_key + i));
      store(shares + row * kKeys + i, x);
    }
  }
}

struct ForwardHead {
  const float *queries, *turned_keys, *values;
  float *scores, *out, *log_sums;
  HeadDropout dropout;
};

// out[positions][padded width] of one head.
DLRUN_INLINE void attend(const ForwardHead& head, const Sizes& of) {
  for (std::int64_t first = 0; first < of.positions; first += kQueries) {
    const std::int64_t queries = std::min(kQueries, of.positions - first);
    float* const out = head.out + first * of.padded_width;
    Running so_far;
    std::fill_n(so_far.highest, kQueries, -INFINITY);
    std::fill_n(so_far.sum, kQueries, 0.0F);
    for (std::int64_t key = 0; key < first + queries; key += kKeys) {
      const Block at{first, queries, key};
      products(head.scores, head.queries, head.turned_keys, at, of);
      soften(head.scores, out, at, of, so_far);
      if (head.dropout.is_on()) drop_shares(head.scores, at, head.dropout);
      block_product({out, of.padded_width}, {head.scores, kKeys},
                    {head.values + key * of.padded_width, of.padded_width},
                    {queries, of.padded_width, at.keys()}, key == 0 ? Sum::anew : Sum::onto);
    }
    for (std::int64_t row = 0; row < queries; ++row) {
      scale_row(out + row * of.padded_width, of.padded_width, 1.0F / so_far.sum[row]);
      head.log_sums[first + row] = so_far.highest[row] + std::log(so_far.sum[row]);
    }
  }
}

template <class T>
DLRUN_INLINE void forward_heads(T* out, const T* in, const AttentionForward& of, const AttentionShape& shape,
                                std::int64_t key_head) {
  const Sizes sizes(shape);
  Pieces pieces{of.scratch};
  float* const queries = pieces.take(sizes.matrix());
  float* const values = pieces.take(sizes.matrix());
  float* const turned_keys = pieces.take(sizes.matrix());
  float* const result = pieces.take(sizes.matrix());
  float* const scores = pieces.take(kQueries * kKeys);
  gather(result, in, key_head_of(shape, key_head), sizes, 1);  // the keys, until they are turned
  rotate(result, sizes, of.rotary, 1);
  turn(turned_keys, result, sizes);
  gather(values, in, value_head(shape, key_head), sizes, 1);
  const std::int64_t each = shape.queries_per_key();
  for (std::int64_t head = key_head * each; head < (key_head + 1) * each; ++head) {
    gather(queries, in, query_head(shape, head), sizes, score_factor(shape));
    rotate(queries, sizes, of.rotary, 1);
    attend({queries,
            turned_keys,
            values,
            scores,
            result,
            of.log_sums + head * shape.positions,
            {of.dropout, head * shape.positions}},
           sizes);
    scatter(out, result, out_head(shape, head), sizes, 1);
  }
}

struct BackwardHead {
  const float *queries, *keys, *turned_keys, *turned_values, *out_gradients, *log_sums, *sums;
  float *shares, *grads, *query_gradients, *key_gradients, *value_gradients;
  HeadDropout dropout;
};

// A block's shares of attention, again, and the gradients of its scores: share * (product - the row's sum).
// Dropout counts for the product, and for the shares that values were multiplied by.
DLRUN_INLINE void block_gradients(const BackwardHead& head, const Block& at, const Sizes& of) {
  products(head.shares, head.queries, head.turned_keys, at, of);
  products(head.grads, head.out_gradients, head.turned_values, at, of);
  if (head.dropout.is_on()) drop_shares(head.grads, at, head.dropout);
  for (std::int64_t row = 0; row < at.queries; ++row) {
    float* const share = head.shares + row * kKeys;
    float* const grad = head.grads + row * kKeys;
    shares(share, at, at.seen(row), head.log_sums[at.first_query + row]);
    const float sum = head.sums[at.first_query + row];
    for (std::int64_t i = 0; i < at.padded_keys(); i += kVector) {
      Floats16 x, y;
      load(x, share + i);
      load(y, grad + i);
      store(grad + i, x * (y - sum));
    }
  }
  if (head.dropout.is_on()) drop_shares(head.shares, at, head.dropout);
}

DLRUN_INLINE void attend_backward(const BackwardHead& head, const Sizes& of) {
  const std::int64_t width = of.padded_width;
  const auto rows = [width](const float* from, std::int64_t first) DLRUN_LAMBDA {
    return BlockView{from + first * width, width};
  };
  const auto onto = [width](float* to, std::int64_t first) DLRUN_LAMBDA {
    return BlockOut{to + first * width, width};
  };
  for (std::int64_t key = 0; key < of.positions; key += kKeys)
    for (std::int64_t first = key / kQueries * kQueries; first < of.positions; first += kQueries) {
      const Block at{first, std::min(kQueries, of.positions - first), key};
      if (at.keys() <= 0) continue;
      block_gradients(head, at, of);
      const BlockView share{head.shares, kKeys}, grad{head.grads, kKeys};
      const BlockSize by_keys{at.keys(), width, at.queries}, by_queries{at.queries, width, at.keys()};
      block_product(onto(head.value_gradients, key), share.turned(), rows(head.out_gradients, first), by_keys,
                    Sum::onto);
      block_product(onto(head.key_gradients, key), grad.turned(), rows(head.queries, first), by_keys,
                    Sum::onto);
      block_product(onto(head.query_gradients, first), grad, rows(head.keys, key), by_queries, Sum::onto);
    }
}

// Of each query: the sum of its output times that one's gradient.
template <class T>
DLRUN_INLINE void sums_of_rows(float* to, const T* out, const T* grads, const Head& head, const Sizes& of) {
  for (std::int64_t t = 0; t < of.positions; ++t) {
    Floats16 sums{};
    for (std::int64_t at = 0; at < of.width; at += kVector) {
      Floats16 x, y;
      load_first(x, out + t * head.row + head.first + at, of.width - at);
      load_first(y, grads + t * head.row + head.first + at, of.width - at);
      sums += x * y;
    }
    to[t] = sum_of(sums);
  }
}

template <class T>
DLRUN_INLINE void backward_heads(T* in_gradient, const T* grads, const T* out, const T* in,
                                 const AttentionBackward& of, const AttentionShape& shape,
                                 std::int64_t key_head) {
  const Sizes sizes(shape);
  Pieces pieces{of.scratch};
  const auto matrix = [&]() DLRUN_LAMBDA { return pieces.take(sizes.matrix()); };
  float *const queries = matrix(), *const keys = matrix(), *const turned_keys = matrix(),
               *const turned_values = matrix(), *const out_gradients = matrix(),
               *const query_gradients = matrix(), *const key_gradients = matrix(),
               *const value_gradients = matrix();
  float* const shares = pieces.take(kQueries * kKeys);
  float* const score_gradients = pieces.take(kQueries * kKeys);
  float* const sums = pieces.take(sizes.padded_positions);
  gather(value_gradients, in, value_head(shape, key_head), sizes, 1);  // the values, until they are turned
  turn(turned_values, value_gradients, sizes);
  gather(keys, in, key_head_of(shape, key_head), sizes, 1);
  rotate(keys, sizes, of.rotary, 1);
  turn(turned_keys, keys, sizes);
  std::fill_n(key_gradients, sizes.matrix(), 0.0F);
  std::fill_n(value_gradients, sizes.matrix(), 0.0F);
  const std::int64_t each = shape.queries_per_key();
  for (std::int64_t head = key_head * each; head < (key_head + 1) * each; ++head) {
    gather(queries, in, query_head(shape, head), sizes, score_factor(shape));
    rotate(queries, sizes, of.rotary, 1);
    gather(out_gradients, grads, out_head(shape, head), sizes, 1);
    sums_of_rows(sums, out, grads, out_head(shape, head), sizes);
    std::fill_n(query_gradients, sizes.matrix(), 0.0F);
    attend_backward({queries,
                     keys,
                     turned_keys,
                     turned_values,
                     out_gradients,
                     of.log_sums + head * shape.positions,
                     sums,
                     shares,
                     score_gradients,
                     query_gradients,
                     key_gradients,
                     value_gradients,
                     {of.dropout, head * shape.positions}},
                    sizes);
    rotate(query_gradients, sizes, of.rotary, -1);
    scatter(in_gradient, query_gradients, query_head(shape, head), sizes, score_factor(shape));
  }
  rotate(key_gradients, sizes, of.rotary, -1);
  scatter(in_gradient, key_gradients, key_head_of(shape, key_head), sizes, 1);
  scatter(in_gradient, value_gradients, value_head(shape, key_head), sizes, 1);
}

}  // namespace

std::size_t attention_scratch(const AttentionShape& shape) {
  const Sizes of(shape);
  return static_cast<std::size_t>(8 * of.matrix() + 2 * kQueries * kKeys + of.padded_positions);
}

DLRUN_VERSIONS void attention(const AttentionForward& of, const AttentionShape& shape,
                              std::int64_t key_head) {
  if (of.in.precision == Precision::bf16)
    return forward_heads(static_cast<Bf16*>(of.out.data), static_cast<const Bf16*>(of.in.data), of, shape,
                         key_head);
  forward_heads(static_cast<float*>(of.out.data), static_cast<const float*>(of.in.data), of, shape, key_head);
}

DLRUN_VERSIONS void attention_backward(const AttentionBackward& of, const AttentionShape& shape,
                                       std::int64_t key_head) {
  if (of.in.precision == Precision::bf16)
    return backward_heads(
        static_cast<Bf16*>(of.in_gradient.data), static_cast<const Bf16*>(of.out_gradient.data),
        static_cast<const Bf16*>(of.out.data), static_cast<const Bf16*>(of.in.data), of, shape, key_head);
  backward_heads(static_cast<float*>(of.in_gradient.data), static_cast<const float*>(of.out_gradient.data),
                 static_cast<const float*>(of.out.data), static_cast<const float*>(of.in.data), of, shape,
                 key_head);
}

}  // namespace dlrun::runtime::kernels
