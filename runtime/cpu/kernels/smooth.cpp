// Leaky ReLU and tanh with their gradients, told from the output, and the bias of a channel. Tanh is a
// quotient of polynomials, a few units in the last place off: the library's is a hundred times slower.
#include <algorithm>

#include "runtime/cpu/kernels/elements.hpp"
#include "runtime/cpu/parallel.hpp"

namespace dlrun::runtime::kernels {

namespace {

// Calls `map` with pointers of the right type, as in elementwise.cpp.
template <class Map>
DLRUN_INLINE void typed(View out, ConstView in, std::size_t count, const Map& map) {
  if (out.precision == Precision::bf16)
    map(static_cast<Bf16*>(out.data), static_cast<const Bf16*>(in.data), count);
  else
    map(static_cast<float*>(out.data), static_cast<const float*>(in.data), count);
}

DLRUN_INLINE void quotient(Floats16& x) {
  const Floats16 high = Floats16{} + 7.90531110763549805F, low = -high;
  x = x > high ? high : x;
  x = x < low ? low : x;  // keeps a NaN
  const Floats16 square = x * x;
  Floats16 above = square * -2.76076847742355e-16F + 2.00018790482477e-13F;
  above = above * square - 8.60467152213735e-11F;
  above = above * square + 5.12229709037114e-08F;
  above = above * square + 1.48572235717979e-05F;
  above = above * square + 6.37261928875436e-04F;
  above = above * square + 4.89352455891786e-03F;
  Floats16 below = square * 1.19825839466702e-06F + 1.18534705686654e-04F;
  below = below * square + 2.26843463243900e-03F;
  below = below * square + 4.89352518554385e-03F;
  x = x * above / below;
}

}  // namespace

DLRUN_VERSIONS void tanh(View out, ConstView in, std::size_t count) {
  typed(out, in, count, [](auto* to, const auto* from, std::size_t n) DLRUN_LAMBDA {
    for (std::size_t i = 0; i < n; i += kLanes) {
      Floats16 value;
      load(value, from + i);
      quotient(value);
      store(to + i, value);
    }
  });
}

DLRUN_VERSIONS void tanh_backward(View gradient, ConstView value, std::size_t count) {
  typed(gradient, value, count, [](auto* to, const auto* values, std::size_t n) DLRUN_LAMBDA {
    for (std::size_t i = 0; i < n; i += kLanes) {
      Floats16 grad, at;
      load(grad, to + i);
      load(at, values + i);
      store(to + i, grad * (1.0F - at * at));
    }
  });
}

DLRUN_VERSIONS void leaky_relu(View out, ConstView in, std::size_t count, float slope) {
  typed(out, in, count, [=](auto* to, const auto* from, std::size_t n) DLRUN_LAMBDA {
    for (std::size_t i = 0; i < n; i += kLanes) {
      Floats16 value;
      load(value, from + i);
      value = value < Floats16{} ? value * slope : value;
      store(to + i, value);
    }
  });
}

DLRUN_VERSIONS void leaky_relu_backward(View gradient, ConstView value, std::size_t count, float slope) {
  typed(gradient, value, count, [=](auto* to, const auto* values, std::size_t n) DLRUN_LAMBDA {
    for (std::size_t i = 0; i < n; i += kLanes) {
      Floats16 flow, at;
      load(flow, to + i);
      load(at, values + i);
      flow = at > Floats16{} ? flow : flow * slope;
      store(to + i, flow);
    }
  });
}

namespace {

template <class T>
void add_bias(T* values, const float* bias, const ChannelShape& of) {
  const std::int64_t plane = of.area * of.inner;
  parallel_for(static_cast<std::size_t>(of.batch * of.outer), 1, [&](std::size_t begin, std::size_t end) {
    for (auto number = static_cast<std::int64_t>(begin); number < static_cast<std::int64_t>(end); ++number) {
      const std::int64_t first = number % of.outer * of.inner;
      const std::int64_t lanes = std::min(of.inner, of.channels - first);
      for (std::int64_t pixel = 0; pixel < of.area; ++pixel)
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          T& value = values[number * plane + pixel * of.inner + lane];
          set(value, to_float(value) + bias[first + lane]);
        }
    }
  });
}

template <class T>
void bias_gradient(float* bias, const T* gradient, const ChannelShape& of) {
  const std::int64_t plane = of.area * of.inner;
  for (std::int64_t channel = 0; channel < of.channels; ++channel) {
    double sum = 0;
    for (std::int64_t n = 0; n < of.batch; ++n) {
      const T* from = gradient + (n * of.outer + channel / of.inner) * plane + channel % of.inner;
      for (std::int64_t pixel = 0; pixel < of.area; ++pixel) sum += to_float(from[pixel * of.inner]);
    }
    bias[channel] = static_cast<float>(sum);
  }
}

}  // namespace

void add_bias(View values, const float* bias, const ChannelShape& shape) {
  if (values.precision == Precision::bf16) return add_bias(static_cast<Bf16*>(values.data), bias, shape);
  add_bias(static_cast<float*>(values.data), bias, shape);
}

void bias_gradient(float* bias, ConstView gradient, const ChannelShape& shape) {
  if (gradient.precision == Precision::bf16)
    return bias_gradient(bias, static_cast<const Bf16*>(gradient.data), shape);
  bias_gradient(bias, static_cast<const float*>(gradient.data), shape);
}

}  // namespace dlrun::runtime::kernels
