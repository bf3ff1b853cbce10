// The own kernels: element-wise passes, pooling, the loss and the optimizer. Each works on a range, so that
// callers decide about threads; none allocates. Buffers are padded to whole cache lines, so element-wise
// kernels may round a count up to 16 lanes. T is float or Bf16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/simd.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime::kernels {

// An untyped view of activations, so that callers need not know the precision.
struct ConstView {
  const void* data;
  Precision precision;
  ConstView from(std::size_t element) const {
    return {static_cast<const std::byte*>(data) + element * (precision == Precision::bf16 ? 2 : 4),
            precision};
  }
};
struct View {
  void* data;
  Precision precision;
  View from(std::size_t element) const {
    return {static_cast<std::byte*>(data) + element * (precision == Precision::bf16 ? 2 : 4), precision};
  }
};

inline constexpr std::size_t kGrain = 1 << 14;  // elements that are worth a thread

// out = max(in, 0); in place allowed.
void relu(View out, ConstView in, std::size_t count);
// gradient = 0 where value <= 0.
void relu_backward(View gradient, ConstView value, std::size_t count);
// Activations whose slope can be told from their value. `slope`: a leaky ReLU's.
void leaky_relu(View out, ConstView in, std::size_t count, float slope);
void tanh(View out, ConstView in, std::size_t count);
void leaky_relu_backward(View gradient, ConstView value, std::size_t count, float slope);
void tanh_backward(View gradient, ConstView value, std::size_t count);
// out = left + right, then max(.., 0) for add_relu; in place allowed.
void add(View out, ConstView left, ConstView right, std::size_t count);
void add_relu(View out, ConstView left, ConstView right, std::size_t count);
// out = (left + right), 0 where value <= 0: gradients of two readers of a ReLU's output.
void add_relu_backward(View out, ConstView left, ConstView right, ConstView value, std::size_t count);

// Dropout: element i survives where its random number says so, then times 1 / (1 - probability). Backward is
// the same map on the gradient. `first` is the index of the range's first element.
void dropout(View out, ConstView in, std::size_t first, std::size_t count, const DropoutRule& rule);

// A bf16 copy of rows of f32, two rows interleaved: a0 b0 a1 b1 ..., which is how bf16 products read weights.
// `row` is a multiple of 16 floats, `count` of two rows.
void interleave(Bf16* copy, const float* values, std::size_t count, std::size_t row);

// Pooling over [batch][outer][height][width][inner].
struct PoolShape {
  std::int64_t planes;  // batch x outer
  std::int64_t in_height, in_width, out_height, out_width, inner;
  std::int64_t window, stride, padding;
};
inline constexpr std::uint8_t kNoIndex = 255;  // a window whose gradient goes nowhere
// Writes each window's maximum and which of its elements it was (row x window + column, the first of equals).
// The relu form makes negative maxima 0 and gives them kNoIndex.
void max_pool(View out, std::uint8_t* argmax, ConstView in, const PoolShape& shape);
void max_pool_relu(View out, std::uint8_t* argmax, ConstView in, const PoolShape& shape);
void max_pool_backward(View in_gradient, ConstView out_gradient, const std::uint8_t* argmax,
                       const PoolShape& shape);

// The same of volumes; the element is (depth x window + row) x window + column.
struct VolumePoolShape {
  std::int64_t planes;
  std::int64_t in_depth, in_height, in_width, out_depth, out_height, out_width, inner;
  std::int64_t window, stride, padding;
};
void max_pool(View out, std::uint8_t* argmax, ConstView in, const VolumePoolShape& shape,
              Activation activation);
void max_pool_backward(View in_gradient, ConstView out_gradient, const std::uint8_t* argmax,
                       const VolumePoolShape& shape);

// The mean over height x width: [planes][area][inner] to [planes][inner] and its gradient.
void average_pool(View out, ConstView in, std::int64_t planes, std::int64_t area, std::int64_t inner);
void average_pool_backward(View in_gradient, ConstView out_gradient, std::int64_t planes, std::int64_t area,
                           std::int64_t inner);

// For [planes = batch x outer][area][inner]: adds one number per channel, which are outer x inner; and the
// sums of a gradient over all but the channels.
struct ChannelShape {
  std::int64_t batch, outer, area, inner, channels;
};
void add_bias(View values, const float* bias, const ChannelShape& shape);
void bias_gradient(float* bias, ConstView gradient, const ChannelShape& shape);

// Standard normal numbers; number i of a key is always the same.
void normal(float* out, std::size_t count, std::uint64_t key);

// Sigmoid cross-entropy of one logit a row, `stride` elements apart, against a target of 0 or 1; `gradient`
// (may be null) as below, 0 between the logits.
struct LogitRows {
  ConstView scores;
  const std::int32_t* labels;  // -1: the row does not count
  std::int64_t rows, stride;
};
BatchResult sigmoid_cross_entropy(View gradient, const LogitRows& of, std::optional<int> target);

// The targets of rows. `smoothing`: the part that all classes share. Where there are other labels, the rest
// is the label's by its own weight, and the other one's.
struct SoftmaxTargets {
  const std::int32_t* labels;
  float smoothing = 0;
  const std::int32_t* other_labels = nullptr;
  const float* own_weights = nullptr;
};

// Softmax cross-entropy of scores[rows][classes]; gradient (may be null) of the sum divided by `rows`, times
// `weight`. A row with label -1 counts nothing and has gradient 0. A label outside 0..classes-1 counts as -1.
BatchResult softmax_cross_entropy(View gradient, const float* scores, const SoftmaxTargets& targets,
                                  std::int64_t rows, std::int64_t classes, float weight = 1);

}  // namespace dlrun::runtime::kernels
