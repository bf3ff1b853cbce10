// Pooling kernels. Channels are innermost, 16 side by side where their number allows it, else one by one.
#include <algorithm>
#include <limits>

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

namespace {

// The part of a window that lies inside the image.
struct Span {
  std::int64_t origin, begin, end;  // origin + begin .. origin + end are pixels
};

DLRUN_INLINE Span clip(std::int64_t position, std::int64_t extent, const PoolShape& shape) {
  const std::int64_t origin = position * shape.stride - shape.padding;
  return {origin, std::max<std::int64_t>(0, -origin), std::min(shape.window, extent - origin)};
}

template <Activation kActivation, class T>
DLRUN_INLINE void maximum16(T* out, std::uint8_t* argmax, const T* plane, const Span& rows,
                            const Span& columns, const PoolShape& shape) {
  const std::int64_t row_step = shape.in_width * shape.inner;
  const T* row_start =
      plane + (rows.origin + rows.begin) * row_step + (columns.origin + columns.begin) * shape.inner;
  const std::int64_t height = rows.end - rows.begin, width = columns.end - columns.begin;
  const auto first = static_cast<std::int32_t>(rows.begin * shape.window + columns.begin);
  Floats16 best;
  load(best, row_start);
  Ints16 index = Ints16{} + first;
  Floats16 sum{};
  for (std::int64_t row = 0; row < height; ++row, row_start += row_step) {
    Ints16 code = Ints16{} + static_cast<std::int32_t>(first + row * shape.window);
    for (std::int64_t column = 0; column < width; ++column) {
      Floats16 value;
      load(value, row_start + column * shape.inner);
      const Ints16 stays = value <= best;
      index = stays ? index : code;
      best = stays ? best : value;
      sum += value;
      code += 1;
    }
  }
  // What is not a number must not get lost. (Not a second mask in the loop: those cost scalar code.)
  best = sum != sum ? sum : best;
  if constexpr (kActivation == Activation::relu) {
    const Floats16 zero{};
    const Ints16 alive = best > zero;
    index = alive ? index : Ints16{} + kNoIndex;
    best = best < zero ? zero : best;
  }
  store_exact(out, best);
  const Bytes16 bytes = __builtin_convertvector(index, Bytes16);
  std::memcpy(argmax, &bytes, sizeof bytes);
}

template <Activation kActivation, class T>
DLRUN_INLINE void maximum1(T* out, std::uint8_t* argmax, const T* plane, const Span& rows,
                           const Span& columns, const PoolShape& shape) {
  float best = -std::numeric_limits<float>::infinity();
  auto index = static_cast<std::uint8_t>(rows.begin * shape.window + columns.begin);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const float value =
          to_float(plane[((rows.origin + row) * shape.in_width + columns.origin + column) * shape.inner]);
      if (!(value > best) && value == value) continue;
      best = value;
      index = static_cast<std::uint8_t>(row * shape.window + column);
    }
  if (kActivation == Activation::relu && !(best > 0)) {
    index = kNoIndex;
    best = best < 0 ? 0 : best;
  }
  set(*out, best);
  *argmax = index;
}

template <Activation kActivation, class T>
DLRUN_INLINE void pool(T* out, std::uint8_t* argmax, const T* in, const PoolShape& shape) {
  for (std::int64_t plane = 0; plane < shape.planes; ++plane) {
    for (std::int64_t y = 0; y < shape.out_height; ++y) {
      const Span rows = clip(y, shape.in_height, shape);
      for (std::int64_t x = 0; x < shape.out_width; ++x) {
        const Span columns = clip(x, shape.in_width, shape);
        std::int64_t channel = 0;
        for (; channel + 16 <= shape.inner; channel += 16)
          maximum16<kActivation>(out + channel, argmax + channel, in + channel, rows, columns, shape);
        for (; channel < shape.inner; ++channel)
          maximum1<kActivation>(out + channel, argmax + channel, in + channel, rows, columns, shape);
        out += shape.inner;
        argmax += shape.inner;
      }
    }
    in += shape.in_height * shape.in_width * shape.inner;
  }
}

enum class Windows { apart, overlapping };

// The gradients of one window's pixels, in 16 channels. apart: every pixel belongs to at most one window, so
// its gradient is stored as it is; overlapping: it is added.
template <Windows kWindows, class T>
DLRUN_INLINE void spread16(T* pixels, const T* grads, const std::uint8_t* argmax, const Span& rows,
                           const Span& columns, const PoolShape& shape) {
  using Lanes = typename Raw<T>::Lanes;
  Bytes16 bytes;
  std::memcpy(&bytes, argmax, sizeof bytes);
  const Lanes index = __builtin_convertvector(bytes, Lanes);
  Lanes raw;
  std::memcpy(&raw, grads, sizeof raw);
  Floats16 grad;
  load(grad, grads);
  const Ints16 wide = __builtin_convertvector(bytes, Ints16);
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      T* pixel = pixels + ((rows.origin + row) * shape.in_width + columns.origin + column) * shape.inner;
      const auto code = row * shape.window + column;
      if constexpr (kWindows == Windows::apart) {
        const Lanes result = index == Lanes{} + static_cast<std::uint8_t>(code) ? raw : Lanes{};
        std::memcpy(static_cast<void*>(pixel), &result, sizeof result);
      } else {
        Floats16 sum;
        const Floats16 zero{};
        load(sum, pixel);
        sum += wide == Ints16{} + static_cast<std::int32_t>(code) ? grad : zero;
        store(pixel, sum);
      }
    }
}

template <Windows kWindows, class T>
DLRUN_INLINE void spread1(T* pixels, const T* grad, const std::uint8_t* argmax, const Span& rows,
                          const Span& columns, const PoolShape& shape) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      T* pixel = pixels + ((rows.origin + row) * shape.in_width + columns.origin + column) * shape.inner;
      const float share = *argmax == row * shape.window + column ? to_float(*grad) : 0.0F;
      set(*pixel, kWindows == Windows::overlapping ? to_float(*pixel) + share : share);
    }
}

template <Windows kWindows, class T>
DLRUN_INLINE void spread(T* plane, const T* grads, const std::uint8_t* argmax, const Span& rows,
                         const Span& columns, const PoolShape& shape) {
  std::int64_t channel = 0;
  for (; channel + 16 <= shape.inner; channel += 16)
    spread16<kWindows>(plane + channel, grads + channel, argmax + channel, rows, columns, shape);
  for (; channel < shape.inner; ++channel)
    spread1<kWindows>(plane + channel, grads + channel, argmax + channel, rows, columns, shape);
}

template <Windows kWindows, class T>
DLRUN_INLINE void pool_backward(T* in, const T* out, const std::uint8_t* argmax, const PoolShape& shape) {
  const std::int64_t plane_elements = shape.in_height * shape.in_width * shape.inner;
  const bool covered = kWindows == Windows::apart && shape.stride == shape.window &&
                       shape.out_height * shape.stride >= shape.in_height &&
                       shape.out_width * shape.stride >= shape.in_width;
  for (std::int64_t plane = 0; plane < shape.planes; ++plane) {
    if (!covered)
      std::memset(static_cast<void*>(in), 0, static_cast<std::size_t>(plane_elements) * sizeof(T));
    for (std::int64_t y = 0; y < shape.out_height; ++y) {
      const Span rows = clip(y, shape.in_height, shape);
      for (std::int64_t x = 0; x < shape.out_width; ++x) {
        spread<kWindows>(in, out, argmax, rows, clip(x, shape.in_width, shape), shape);
        out += shape.inner;
        argmax += shape.inner;
      }
    }
    in += plane_elements;
  }
}

template <class T>
DLRUN_INLINE void window_mean(T* out, const T* in, std::int64_t planes, std::int64_t area,
                              std::int64_t inner) {
  const float share = 1.0F / static_cast<float>(area);
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t channel = 0; channel < inner; ++channel) {
      float sum = 0;
      for (std::int64_t pixel = 0; pixel < area; ++pixel) sum += to_float(in[pixel * inner + channel]);
      set(out[channel], sum * share);
    }
    in += area * inner;
    out += inner;
  }
}

template <class T>
DLRUN_INLINE void mean_backward(T* in, const T* out, std::int64_t planes, std::int64_t area,
                                std::int64_t inner) {
  const float share = 1.0F / static_cast<float>(area);
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    for (std::int64_t pixel = 0; pixel < area; ++pixel)
      for (std::int64_t channel = 0; channel < inner; ++channel)
        set(in[pixel * inner + channel], to_float(out[channel]) * share);
    in += area * inner;
    out += inner;
  }
}

template <Activation kActivation>
DLRUN_INLINE void pool_any(View out, std::uint8_t* argmax, ConstView in, const PoolShape& shape) {
  if (out.precision == Precision::bf16)
    pool<kActivation>(static_cast<Bf16*>(out.data), argmax, static_cast<const Bf16*>(in.data), shape);
  else
    pool<kActivation>(static_cast<float*>(out.data), argmax, static_cast<const float*>(in.data), shape);
}

}  // namespace

DLRUN_VERSIONS void max_pool(View out, std::uint8_t* argmax, ConstView in, const PoolShape& shape) {
  pool_any<Activation::none>(out, argmax, in, shape);
}

DLRUN_VERSIONS void max_pool_relu(View out, std::uint8_t* argmax, ConstView in, const PoolShape& shape) {
  pool_any<Activation::relu>(out, argmax, in, shape);
}

DLRUN_VERSIONS void max_pool_backward(View in_gradient, ConstView out_gradient, const std::uint8_t* argmax,
                                      const PoolShape& shape) {
  const bool apart = shape.stride >= shape.window;
  if (in_gradient.precision == Precision::bf16) {
    auto* in = static_cast<Bf16*>(in_gradient.data);
    const auto* out = static_cast<const Bf16*>(out_gradient.data);
    if (apart)
      pool_backward<Windows::apart>(in, out, argmax, shape);
    else
      pool_backward<Windows::overlapping>(in, out, argmax, shape);
  } else {
    auto* in = static_cast<float*>(in_gradient.data);
    const auto* out = static_cast<const float*>(out_gradient.data);
    if (apart)
      pool_backward<Windows::apart>(in, out, argmax, shape);
    else
      pool_backward<Windows::overlapping>(in, out, argmax, shape);
  }
}

DLRUN_VERSIONS void average_pool(View out, ConstView in, std::int64_t planes, std::int64_t area,
                                 std::int64_t inner) {
  if (out.precision == Precision::bf16)
    window_mean(static_cast<Bf16*>(out.data), static_cast<const Bf16*>(in.data), planes, area, inner);
  else
    window_mean(static_cast<float*>(out.data), static_cast<const float*>(in.data), planes, area, inner);
}

DLRUN_VERSIONS void average_pool_backward(View in_gradient, ConstView out_gradient, std::int64_t planes,
                                          std::int64_t area, std::int64_t inner) {
  if (in_gradient.precision == Precision::bf16)
    mean_backward(static_cast<Bf16*>(in_gradient.data), static_cast<const Bf16*>(out_gradient.data), planes,
                  area, inner);
  else
    mean_backward(static_cast<float*>(in_gradient.data), static_cast<const float*>(out_gradient.data), planes,
                  area, inner);
}

}  // namespace dlrun::runtime::kernels
