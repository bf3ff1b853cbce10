// Rows of a table by number, and their gradients: what an embedding does. Forward works on a range of the
// batch's tokens, backward on a range of the features: several tokens may add to one row.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

struct EmbeddingShape {
  std::int64_t rows;  // tokens of the batch: samples x positions
  std::int64_t positions, features, vocabulary;
};
struct EmbeddingRange {
  std::int64_t begin, end;
};

/// `positions` may be null. A token outside the vocabulary has features of 0.
struct EmbeddingTables {
  const std::int32_t* tokens;
  const float *weights, *positions;
};
void embed(View out, const EmbeddingTables& of, const EmbeddingShape& shape, const EmbeddingRange& tokens);

/// Adds to the gradient of the weights, and writes that of the positions (may be null).
struct EmbeddingGradients {
  float *weights, *positions;
};
void embed_backward(const EmbeddingGradients& to, ConstView out_gradient, const std::int32_t* tokens,
                    const EmbeddingShape& shape, const EmbeddingRange& features);

}  // namespace dlrun::runtime::kernels
