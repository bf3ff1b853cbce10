// See rows.hpp.
#include "runtime/cpu/kernels/rows.hpp"

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

bool is_known(std::int32_t token, const EmbeddingShape& shape) {
  return token >= 0 && token < shape.vocabulary;
}

template <class T>
DLRUN_INLINE void embed_rows(T* out, const EmbeddingTables& of, const EmbeddingShape& shape,
                             const EmbeddingRange& tokens) {
  for (std::int64_t row = tokens.begin; row < tokens.end; ++row) {
    const std::int32_t token = of.tokens[row];
    const float* const weights = is_known(token, shape) ? of.weights + token * shape.features : nullptr;
    const float* const position =
        of.positions == nullptr ? nullptr : of.positions + row % shape.positions * shape.features;
    for (std::int64_t at = 0; at < shape.features; at += kVector) {
      Floats16 x{}, y{};
      if (weights != nullptr) load_first(x, weights + at, shape.features - at);
      if (position != nullptr) load_first(y, position + at, shape.features - at);
      store_first(out + row * shape.features + at, x + y, shape.features - at);
    }
  }
}

enum class Row { anew, added_to };

template <class T>
DLRUN_INLINE void add_row(float* to, const T* grads, const EmbeddingRange& features, Row row) {
  for (std::int64_t at = features.begin; at < features.end; at += kVector) {
    Floats16 x, y{};
    load_first(x, grads + at, features.end - at);
    if (row == Row::added_to) load_first(y, to + at, features.end - at);
    store_first(to + at, x + y, features.end - at);
  }
}

template <class T>
DLRUN_INLINE void add_rows(const EmbeddingGradients& to, const T* grads, const std::int32_t* tokens,
                           const EmbeddingShape& shape, const EmbeddingRange& features) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const T* const grad = grads + row * shape.features;
    if (is_known(tokens[row], shape))
      add_row(to.weights + tokens[row] * shape.features, grad, features, Row::added_to);
    if (to.positions != nullptr)
      add_row(to.positions + row % shape.positions * shape.features, grad, features,
              row < shape.positions ? Row::anew : Row::added_to);
  }
}

}  // namespace

DLRUN_VERSIONS void embed(View out, const EmbeddingTables& of, const EmbeddingShape& shape,
                          const EmbeddingRange& tokens) {
  if (out.precision == Precision::bf16) return embed_rows(static_cast<Bf16*>(out.data), of, shape, tokens);
  embed_rows(static_cast<float*>(out.data), of, shape, tokens);
}

DLRUN_VERSIONS void embed_backward(const EmbeddingGradients& to, ConstView out_gradient,
                                   const std::int32_t* tokens, const EmbeddingShape& shape,
                                   const EmbeddingRange& features) {
  if (out_gradient.precision == Precision::bf16)
    return add_rows(to, static_cast<const Bf16*>(out_gradient.data), tokens, shape, features);
  add_rows(to, static_cast<const float*>(out_gradient.data), tokens, shape, features);
}

}  // namespace dlrun::runtime::kernels
