// Max pooling of volumes: windows are cubes, channels are innermost. Blocks of up to 16 channels go through a
// window together.
#include <algorithm>
#include <array>
#include <limits>

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

namespace {

constexpr std::int64_t kChannels = 16;

// The part of a window's side that lies inside the volume.
struct Side {
  std::int64_t origin, begin, end;  // origin + begin .. origin + end are voxels
};

DLRUN_INLINE Side side_of(std::int64_t place, std::int64_t extent, const VolumePoolShape& shape) {
  const std::int64_t origin = place * shape.stride - shape.padding;
  return {origin, std::max<std::int64_t>(0, -origin), std::min(shape.window, extent - origin)};
}

// body(the place of a voxel of the window in the volume, its number in the window).
template <class Body>
DLRUN_INLINE void each_voxel(const Side& deep, const Side& rows, const Side& columns,
                             const VolumePoolShape& shape, const Body& body) {
  for (std::int64_t d = deep.begin; d < deep.end; ++d)
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (std::int64_t column = columns.begin; column < columns.end; ++column) {
        const std::int64_t plane = (deep.origin + d) * shape.in_height + rows.origin + row;
        body(plane * shape.in_width + columns.origin + column,
             static_cast<std::uint8_t>((d * shape.window + row) * shape.window + column));
      }
}

// body(number of the output voxel in its plane, the sides of its window).
template <class Body>
DLRUN_INLINE void each_window(const VolumePoolShape& shape, const Body& body) {
  std::int64_t voxel = 0;
  for (std::int64_t z = 0; z < shape.out_depth; ++z) {
    const Side deep = side_of(z, shape.in_depth, shape);
    for (std::int64_t y = 0; y < shape.out_height; ++y) {
      const Side rows = side_of(y, shape.in_height, shape);
      for (std::int64_t x = 0; x < shape.out_width; ++x)
        body(voxel++, deep, rows, side_of(x, shape.in_width, shape));
    }
  }
}

// What is not a number must not get lost.
template <class T>
DLRUN_INLINE void maximum(T* out, std::uint8_t* argmax, const T* in, std::int64_t channels, const Side& deep,
                          const Side& rows, const Side& columns, const VolumePoolShape& shape,
                          Activation activation) {
  std::array<float, kChannels> best;
  std::array<std::uint8_t, kChannels> index{};
  best.fill(-std::numeric_limits<float>::infinity());
  each_voxel(deep, rows, columns, shape, [&](std::int64_t voxel, std::uint8_t number) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const float value = to_float(in[voxel * shape.inner + c]);
      const auto at = static_cast<std::size_t>(c);
      if (!(value > best[at]) && value == value) continue;
      best[at] = value;
      index[at] = number;
    }
  });
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const bool dead = activation == Activation::relu && !(best[at] > 0);
    set(out[c], dead && best[at] < 0 ? 0.0F : best[at]);
    argmax[c] = dead ? kNoIndex : index[at];
  }
}

template <class T>
DLRUN_INLINE void pool_volume(T* out, std::uint8_t* argmax, const T* in, const VolumePoolShape& shape,
                              Activation activation) {
  const std::int64_t in_plane = shape.in_depth * shape.in_height * shape.in_width * shape.inner;
  const std::int64_t out_plane = shape.out_depth * shape.out_height * shape.out_width * shape.inner;
  for (std::int64_t plane = 0; plane < shape.planes;
       ++plane, in += in_plane, out += out_plane, argmax += out_plane)
    each_window(shape, [&](std::int64_t voxel, const Side& deep, const Side& rows, const Side& columns) {
      for (std::int64_t c = 0; c < shape.inner; c += kChannels)
        maximum(out + voxel * shape.inner + c, argmax + voxel * shape.inner + c, in + c,
                std::min(kChannels, shape.inner - c), deep, rows, columns, shape, activation);
    });
}

template <class T>
DLRUN_INLINE void spread_volume(T* in, const T* out, const std::uint8_t* argmax,
                                const VolumePoolShape& shape) {
  const std::int64_t in_plane = shape.in_depth * shape.in_height * shape.in_width * shape.inner;
  const std::int64_t out_plane = shape.out_depth * shape.out_height * shape.out_width * shape.inner;
  for (std::int64_t plane = 0; plane < shape.planes;
       ++plane, in += in_plane, out += out_plane, argmax += out_plane) {
    for (std::int64_t i = 0; i < in_plane; ++i) set(in[i], 0.0F);
    each_window(shape, [&](std::int64_t window, const Side& deep, const Side& rows, const Side& columns) {
      each_voxel(deep, rows, columns, shape, [&](std::int64_t voxel, std::uint8_t number) {
        for (std::int64_t c = 0; c < shape.inner; ++c)
          if (argmax[window * shape.inner + c] == number)
            set(in[voxel * shape.inner + c],
                to_float(in[voxel * shape.inner + c]) + to_float(out[window * shape.inner + c]));
      });
    });
  }
}

}  // namespace

DLRUN_VERSIONS void max_pool(View out, std::uint8_t* argmax, ConstView in, const VolumePoolShape& shape,
                             Activation activation) {
  if (out.precision == Precision::bf16)
    pool_volume(static_cast<Bf16*>(out.data), argmax, static_cast<const Bf16*>(in.data), shape, activation);
  else
    pool_volume(static_cast<float*>(out.data), argmax, static_cast<const float*>(in.data), shape, activation);
}

DLRUN_VERSIONS void max_pool_backward(View in_gradient, ConstView out_gradient, const std::uint8_t* argmax,
                                      const VolumePoolShape& shape) {
  if (in_gradient.precision == Precision::bf16)
    spread_volume(static_cast<Bf16*>(in_gradient.data), static_cast<const Bf16*>(out_gradient.data), argmax,
                  shape);
  else
    spread_volume(static_cast<float*>(in_gradient.data), static_cast<const float*>(out_gradient.data), argmax,
                  shape);
}

}  // namespace dlrun::runtime::kernels
