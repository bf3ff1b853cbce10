// See gelu.hpp.
#include "runtime/cpu/kernels/gelu.hpp"

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

constexpr float kTwice = 1.5957691216F, kCubic = 0.044715F;  // 2 sqrt(2 / pi)

// share = 1 / (1 + e^-2u), the probability that stands for the normal one.
DLRUN_INLINE void normal_share(Floats16& share, const Floats16& x) {
  share = x * (x * x * (-kTwice * kCubic) - kTwice);
  exponential(share);
  share = 1.0F / (1.0F + share);
}

template <class T>
DLRUN_INLINE void gelu_range(T* out, const T* in, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    Floats16 x, share;
    load(x, in + i);
    normal_share(share, x);
    store(out + i, x * share);
  }
}

template <class T>
DLRUN_INLINE void gelu_gradients(T* to, const T* grads, const T* in, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    Floats16 x, share, grad;
    load(x, in + i);
    load(grad, grads + i);
    normal_share(share, x);
    const Floats16 inner = x * (x * x * (3 * kTwice * kCubic) + kTwice);
    store(to + i, grad * share * (1.0F + inner * (1.0F - share)));
  }
}

}  // namespace

DLRUN_VERSIONS void gelu_by_tanh(View out, ConstView in, std::size_t count) {
  if (out.precision == Precision::bf16)
    return gelu_range(static_cast<Bf16*>(out.data), static_cast<const Bf16*>(in.data), count);
  gelu_range(static_cast<float*>(out.data), static_cast<const float*>(in.data), count);
}

DLRUN_VERSIONS void gelu_by_tanh_backward(View in_gradient, ConstView out_gradient, ConstView in,
                                          std::size_t count) {
  if (in.precision == Precision::bf16)
    return gelu_gradients(static_cast<Bf16*>(in_gradient.data), static_cast<const Bf16*>(out_gradient.data),
                          static_cast<const Bf16*>(in.data), count);
  gelu_gradients(static_cast<float*>(in_gradient.data), static_cast<const float*>(out_gradient.data),
                 static_cast<const float*>(in.data), count);
}

}  // namespace dlrun::runtime::kernels
