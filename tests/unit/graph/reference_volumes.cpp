// See reference_volumes.hpp.
#include "reference_volumes.hpp"

namespace dlrun::runtime::test {
namespace {

// body(z, y, x) of each voxel.
template <class Body>
void each_voxel(std::int64_t depth, std::int64_t height, std::int64_t width, const Body& body) {
  for (std::int64_t z = 0; z < depth; ++z)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) body(z, y, x);
}

bool inside(std::int64_t z, std::int64_t y, std::int64_t x, const Shape& shape) {
  return z >= 0 && z < shape.depth && y >= 0 && y < shape.height && x >= 0 && x < shape.width;
}

}  // namespace

Numbers reference_volume_convolution(const Numbers& in, const Numbers& weights, const Numbers* bias,
                                     const Shape& from, const Shape& to, const op::Convolution& spec) {
  const std::int64_t rows = std::ssize(in) / from.elements(), k = spec.kernel;
  const std::int64_t channels = from.channels / spec.groups, filters = spec.filters / spec.groups;
  Numbers out;
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t o = 0; o < spec.filters; ++o)
      each_voxel(to.depth, to.height, to.width, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
        double sum = bias == nullptr ? 0 : (*bias)[o];
        for (std::int64_t c = 0; c < channels; ++c)
          each_voxel(k, k, k, [&](std::int64_t h, std::int64_t i, std::int64_t j) {
            const std::int64_t w = z * spec.stride - spec.padding + h, v = y * spec.stride - spec.padding + i,
                               u = x * spec.stride - spec.padding + j;
            if (!inside(w, v, u, from)) return;
            const std::int64_t plane = n * from.channels + o / filters * channels + c;
            sum += weights[(((o * channels + c) * k + h) * k + i) * k + j] *
                   in[((plane * from.depth + w) * from.height + v) * from.width + u];
          });
        out.push_back(sum);
      });
  return out;
}

Numbers reference_volume_pool(const Numbers& in, const Shape& from, const Shape& to, const CubeWindow& window,
                              PoolVoxels pool) {
  const std::int64_t planes = std::ssize(in) / (from.depth * from.height * from.width);
  Numbers out;
  for (std::int64_t plane = 0; plane < planes; ++plane)
    each_voxel(to.depth, to.height, to.width, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
      Numbers voxels;
      std::size_t zeros = 0;
      each_voxel(window.size, window.size, window.size, [&](std::int64_t h, std::int64_t i, std::int64_t j) {
        const std::int64_t w = z * window.stride - window.padding + h,
                           v = y * window.stride - window.padding + i,
                           u = x * window.stride - window.padding + j;
        if (inside(w, v, u, from))
          voxels.push_back(in[((plane * from.depth + w) * from.height + v) * from.width + u]);
        else
          ++zeros;
      });
      out.push_back(pool(voxels, zeros));
    });
  return out;
}

}  // namespace dlrun::runtime::test
