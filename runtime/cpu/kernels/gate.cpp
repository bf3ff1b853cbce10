// See gate.hpp.
#include "runtime/cpu/kernels/gate.hpp"

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

DLRUN_INLINE void sigmoid(Floats16& x) {
  x = -x;
  exponential(x);
  x = 1.0F / (1.0F + x);
}

template <class T>
DLRUN_INLINE void gate_range(T* out, const T* gate, const T* up, std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    Floats16 x, share, y;
    load(x, gate + i);
    load(y, up + i);
    share = x;
    sigmoid(share);
    store(out + i, x * share * y);
  }
}

// d silu(x) / dx = share * (1 + x * (1 - share)).
template <class T>
DLRUN_INLINE void gate_gradients(T* to_gate, T* to_up, const T* grads, const T* gate, const T* up,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; i += kLanes) {
    Floats16 x, share, y, grad;
    load(x, gate + i);
    load(y, up + i);
    load(grad, grads + i);
    share = x;
    sigmoid(share);
    if (to_gate != nullptr) store(to_gate + i, grad * y * share * (1.0F + x * (1.0F - share)));
    if (to_up != nullptr) store(to_up + i, grad * x * share);
  }
}

template <class T>
DLRUN_INLINE const T* typed(ConstView of) {
  return static_cast<const T*>(of.data);
}

template <class T>
DLRUN_INLINE void gradients_of(const GateGradients& to, ConstView grads, ConstView gate, ConstView up,
                               std::size_t count) {
  gate_gradients(static_cast<T*>(to.gate.data), static_cast<T*>(to.up.data), typed<T>(grads), typed<T>(gate),
                 typed<T>(up), count);
}

}  // namespace

DLRUN_VERSIONS void swiglu(View out, ConstView gate, ConstView up, std::size_t count) {
  if (out.precision == Precision::bf16)
    return gate_range(static_cast<Bf16*>(out.data), typed<Bf16>(gate), typed<Bf16>(up), count);
  gate_range(static_cast<float*>(out.data), typed<float>(gate), typed<float>(up), count);
}

DLRUN_VERSIONS void swiglu_backward(const GateGradients& to, ConstView out_gradient, ConstView gate,
                                    ConstView up, std::size_t count) {
  if (gate.precision == Precision::bf16) return gradients_of<Bf16>(to, out_gradient, gate, up, count);
  gradients_of<float>(to, out_gradient, gate, up, count);
}

}  // namespace dlrun::runtime::kernels
