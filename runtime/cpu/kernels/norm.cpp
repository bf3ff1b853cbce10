// See norm.hpp. A row is read two or three times while it lies in the nearest cache.
#include "runtime/cpu/kernels/norm.hpp"

#include <cmath>

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

// Calls body(first feature, features) for each vector of a row.
template <class Body>
DLRUN_INLINE void by_vectors(std::int64_t features, const Body& body) {
  std::int64_t at = 0;
  for (; at + kVector <= features; at += kVector) body(at, kVector);
  if (at < features) body(at, features - at);
}

template <class T>
DLRUN_INLINE void normalize_row(T* out, const T* in, const NormForward& of, std::int64_t row,
                                const NormRule& rule) {
  Floats16 sums{};
  if (rule.centre == Centre::mean)
    by_vectors(rule.features, [&](std::int64_t at, std::int64_t count) DLRUN_LAMBDA {
      Floats16 x;
      load_first(x, in + at, count);
      sums += x;
    });
  const float mean = sum_of(sums) / static_cast<float>(rule.features);
  sums = Floats16{};
  by_vectors(rule.features, [&](std::int64_t at, std::int64_t count) DLRUN_LAMBDA {
    Floats16 x;
    load_first(x, in + at, count);
    x -= mean;
    if (count < kVector) keep_first(x, count);
    sums += x * x;
  });
  const float inverse = 1.0F / std::sqrt(sum_of(sums) / static_cast<float>(rule.features) + rule.epsilon);
  by_vectors(rule.features, [&](std::int64_t at, std::int64_t count) DLRUN_LAMBDA {
    Floats16 x, scale, shift{};
    load_first(x, in + at, count);
    load_first(scale, of.scale + at, count);
    if (of.shift != nullptr) load_first(shift, of.shift + at, count);
    store_first(out + at, (x - mean) * inverse * scale + shift, count);
  });
  of.means[row] = mean;
  of.inverses[row] = inverse;
}

// With g = scale * dy and n the normalized row: dx = (g - mean(g) - n * mean(g n)) / deviation.
template <class T>
DLRUN_INLINE void backward_row(T* dx, const T* dy, const T* in, const NormBackward& of, std::int64_t row,
                               const NormRule& rule) {
  const float mean = of.means[row], inverse = of.inverses[row];
  Floats16 sums{}, products{};
  by_vectors(rule.features, [&](std::int64_t at, std::int64_t count) DLRUN_LAMBDA {
    Floats16 x, grad, scale, sum;
    load_first(x, in + at, count);
    load_first(grad, dy + at, count);
    load_first(scale, of.scale + at, count);
    x = (x - mean) * inverse;
    load_first(sum, of.scale_gradient + at, count);
    store_first(of.scale_gradient + at, sum + grad * x, count);
    if (of.shift_gradient != nullptr) {
      load_first(sum, of.shift_gradient + at, count);
      store_first(of.shift_gradient + at, sum + grad, count);
    }
    sums += grad * scale;
    products += grad * scale * x;
  });
  if (dx == nullptr) return;
  const auto features = static_cast<float>(rule.features);
  const float mean_gradient = rule.centre == Centre::mean ? sum_of(sums) / features : 0.0F;
  const float mean_product = sum_of(products) / features;
  by_vectors(rule.features, [&](std::int64_t at, std::int64_t count) DLRUN_LAMBDA {
    Floats16 x, grad, scale;
    load_first(x, in + at, count);
    load_first(grad, dy + at, count);
    load_first(scale, of.scale + at, count);
    x = (x - mean) * inverse;
    store_first(dx + at, (grad * scale - mean_gradient - x * mean_product) * inverse, count);
  });
}

template <class T>
DLRUN_INLINE void norm_rows(T* out, const T* in, const NormForward& of, const NormRows& rows,
                            const NormRule& rule) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    normalize_row(out + row * rule.features, in + row * rule.features, of, row, rule);
}

template <class T>
DLRUN_INLINE void backward_rows(T* dx, const T* dy, const T* in, const NormBackward& of, const NormRows& rows,
                                const NormRule& rule) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    backward_row(dx == nullptr ? dx : dx + row * rule.features, dy + row * rule.features,
                 in + row * rule.features, of, row, rule);
}

}  // namespace

DLRUN_VERSIONS void norm(const NormForward& of, const NormRows& rows, const NormRule& rule) {
  if (of.out.precision == Precision::bf16)
    return norm_rows(static_cast<Bf16*>(of.out.data), static_cast<const Bf16*>(of.in.data), of, rows, rule);
  norm_rows(static_cast<float*>(of.out.data), static_cast<const float*>(of.in.data), of, rows, rule);
}

DLRUN_VERSIONS void norm_backward(const NormBackward& of, const NormRows& rows, const NormRule& rule) {
  if (of.in.precision == Precision::bf16)
    return backward_rows(static_cast<Bf16*>(of.in_gradient.data),
                         static_cast<const Bf16*>(of.out_gradient.data), static_cast<const Bf16*>(of.in.data),
                         of, rows, rule);
  backward_rows(static_cast<float*>(of.in_gradient.data), static_cast<const float*>(of.out_gradient.data),
                static_cast<const float*>(of.in.data), of, rows, rule);
}

}  // namespace dlrun::runtime::kernels
