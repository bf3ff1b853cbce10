// Element-wise kernels: ReLU, sums, dropout, first values and the optimizer. One text for both precisions;
// the public functions are what is compiled for several processors.
#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/kernels/elements.hpp"
#include "runtime/cpu/kernels/survivors.hpp"

namespace dlrun::runtime::kernels {

namespace {

// Calls `map` with pointers of the right type. Buffers are padded to whole lines, so a count that is no
// multiple of 16 lanes ends inside the padding.
template <class Map, class... In>
DLRUN_INLINE void dispatch(View out, std::size_t count, const Map& map, const In&... in) {
  if (out.precision == Precision::bf16)
    map(static_cast<Bf16*>(out.data), count, static_cast<const Bf16*>(in.data)...);
  else
    map(static_cast<float*>(out.data), count, static_cast<const float*>(in.data)...);
}

DLRUN_INLINE void positive_part(Floats16& value) {
  const Floats16 zero{};
  value = value < zero ? zero : value;  // keeps a NaN
}

DLRUN_INLINE void keep_where_positive(Floats16& gradient, const Floats16& value) {
  const Floats16 zero{};
  gradient = value > zero ? gradient : zero;
}

}  // namespace

DLRUN_VERSIONS void relu(View out, ConstView in, std::size_t count) {
  dispatch(
      out, count,
      [](auto* to, std::size_t n, const auto* from) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 value;
          load(value, from + i);
          positive_part(value);
          store(to + i, value);
        }
      },
      in);
}

DLRUN_VERSIONS void relu_backward(View gradient, ConstView value, std::size_t count) {
  dispatch(
      gradient, count,
      [](auto* to, std::size_t n, const auto* values) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 grad, at;
          load(grad, to + i);
          load(at, values + i);
          keep_where_positive(grad, at);
          store(to + i, grad);
        }
      },
      value);
}

DLRUN_VERSIONS void add(View out, ConstView left, ConstView right, std::size_t count) {
  dispatch(
      out, count,
      [](auto* to, std::size_t n, const auto* a, const auto* b) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 x, y;
          load(x, a + i);
          load(y, b + i);
          store(to + i, x + y);
        }
      },
      left, right);
}

DLRUN_VERSIONS void add_relu(View out, ConstView left, ConstView right, std::size_t count) {
  dispatch(
      out, count,
      [](auto* to, std::size_t n, const auto* a, const auto* b) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 x, y;
          load(x, a + i);
          load(y, b + i);
          x += y;
          positive_part(x);
          store(to + i, x);
        }
      },
      left, right);
}

DLRUN_VERSIONS void add_relu_backward(View out, ConstView left, ConstView right, ConstView value,
                                      std::size_t count) {
  dispatch(
      out, count,
      [](auto* to, std::size_t n, const auto* a, const auto* b, const auto* values) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 x, y, at;
          load(x, a + i);
          load(y, b + i);
          load(at, values + i);
          x += y;
          keep_where_positive(x, at);
          store(to + i, x);
        }
      },
      left, right, value);
}

DLRUN_VERSIONS void dropout(View out, ConstView in, std::size_t first, std::size_t count,
                            const DropoutRule& rule) {
  const Survivors survivors(rule);
  dispatch(
      out, count,
      [=](auto* to, std::size_t n, const auto* from) DLRUN_LAMBDA {
        for (std::size_t i = 0; i < n; i += kLanes) {
          Floats16 value;
          load(value, from + i);
          survivors.drop(value, static_cast<std::uint32_t>(first + i));
          store(to + i, value);
        }
      },
      in);
}

DLRUN_VERSIONS void interleave(Bf16* copy, const float* values, std::size_t count, std::size_t row) {
  for (std::size_t start = 0; start < count; start += 2 * row)
    for (std::size_t index = start; index < start + row; index += kLanes) {
      Floats16 even, odd;
      load(even, values + index);
      load(odd, values + index + row);
      store_interleaved(copy + start + 2 * (index - start), even, odd);
    }
}

}  // namespace dlrun::runtime::kernels
