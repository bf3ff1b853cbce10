// Normalization of rows: to mean 0 and variance 1 over the features of a row (layer norm), or to a mean
// square of 1 (RMS norm), then a learned scale and shift. Each works on a range of rows, so that callers
// decide about threads.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

enum class Centre { mean, zero };  // zero: RMS norm

struct NormRule {
  std::int64_t features;
  float epsilon;
  Centre centre;
};

struct NormRows {
  std::int64_t begin, end;
};

/// Also leaves each row's mean and 1 / deviation, where backward finds them. `shift` may be null.
struct NormForward {
  View out;
  ConstView in;
  const float *scale, *shift;
  float *means, *inverses;
};
void norm(const NormForward& of, const NormRows& rows, const NormRule& rule);

/// Adds the rows' part to the gradients of scale and shift (may be null), and writes that of the input where
/// it is wanted.
struct NormBackward {
  View in_gradient;  // null: not wanted
  ConstView out_gradient, in;
  const float *scale, *means, *inverses;
  float *scale_gradient, *shift_gradient;
};
void norm_backward(const NormBackward& of, const NormRows& rows, const NormRule& rule);

}  // namespace dlrun::runtime::kernels
