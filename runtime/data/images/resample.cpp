// See resample.hpp.
#include "runtime/data/images/resample.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/simd.hpp"

namespace dlrun::runtime {
namespace {

constexpr int kBits = 22;  // of a coefficient: a byte times it, with its sign, is 31

struct Taps {
  std::int64_t first = 0;
  std::vector<std::int32_t> coefficients;
};

// Pillow's precompute_coeffs and normalize_coeffs_8bpc, for an input that begins at the box.
std::vector<Taps> taps_of(std::int64_t extent, const Axis& axis) {
  const double scale = static_cast<double>(extent) / static_cast<double>(axis.full);
  const double support = std::max(scale, 1.0), narrow = 1.0 / support;
  std::vector<Taps> out;
  std::vector<double> weights;
  for (std::int64_t i = axis.first; i < axis.first + axis.count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - support + 0.5));
    const auto last = std::min(extent, static_cast<std::int64_t>(centre + support + 0.5));
    weights.clear();
    double sum = 0;
    for (std::int64_t pixel = first; pixel < last; ++pixel) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(pixel) - centre + 0.5) * narrow)));
      sum += weights.back();
    }
    Taps taps{.first = first, .coefficients = {}};
    for (const double weight : weights)
      taps.coefficients.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << kBits)));
    out.push_back(std::move(taps));
  }
  return out;
}

using Pixel4 = std::int32_t __attribute__((vector_size(16)));
using Bytes4 = std::uint8_t __attribute__((vector_size(4)));

DLRUN_INLINE std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kBits, 0, 255));
}

// A row of pixels to fewer or more of them. The three colours of a pixel are summed side by side, with a
// fourth lane that nobody reads: `in` has a byte behind its end.
DLRUN_VERSIONS void scale_row(const std::uint8_t* in, const Taps* taps, std::size_t count,
                              std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    Pixel4 sum = {1 << (kBits - 1), 1 << (kBits - 1), 1 << (kBits - 1), 0};
    const std::uint8_t* pixel = in + taps[i].first * 3;
    const std::int32_t* const weights = taps[i].coefficients.data();
    const std::size_t wide = taps[i].coefficients.size();
    for (std::size_t k = 0; k < wide; ++k, pixel += 3) {
      Bytes4 bytes;
      std::memcpy(&bytes, pixel, sizeof bytes);
      sum += __builtin_convertvector(bytes, Pixel4) * weights[k];
    }
    for (int colour = 0; colour < 3; ++colour) *out++ = to_byte(sum[colour]);
  }
}

// The same along a column, for a whole row of bytes at once.
DLRUN_VERSIONS void mix_rows(const std::uint8_t* in, std::size_t row, const Taps& taps, std::int32_t* sums,
                             std::uint8_t* out) {
  std::fill_n(sums, row, 1 << (kBits - 1));
  const std::uint8_t* from = in + static_cast<std::size_t>(taps.first) * row;
  for (const std::int32_t weight : taps.coefficients) {
    for (std::size_t i = 0; i < row; ++i) sums[i] += from[i] * weight;
    from += row;
  }
  for (std::size_t i = 0; i < row; ++i) out[i] = to_byte(sums[i]);
}

}  // namespace

Image resampled(const Image& image, const Box& box, const Axis& columns, const Axis& rows) {
  const std::vector<Taps> across = taps_of(box.width, columns), down = taps_of(box.height, rows);
  const auto row = static_cast<std::size_t>(columns.count) * 3;
  const std::int64_t first = down.front().first;
  const auto last = down.back().first + static_cast<std::int64_t>(down.back().coefficients.size());
  std::vector<std::uint8_t> narrow(row * static_cast<std::size_t>(last));
  std::vector<std::uint8_t> source(static_cast<std::size_t>(box.width) * 3 + 1);
  for (std::int64_t y = first; y < last; ++y) {
    std::copy_n(image.pixels.data() + ((box.top + y) * image.width + box.left) * 3, source.size() - 1,
                source.data());
    scale_row(source.data(), across.data(), across.size(), narrow.data() + static_cast<std::size_t>(y) * row);
  }
  Image out{.width = columns.count, .height = rows.count, .pixels = {}};
  out.pixels.resize(row * down.size());
  std::vector<std::int32_t> sums(row);
  for (std::size_t y = 0; y < down.size(); ++y)
    mix_rows(narrow.data(), row, down[y], sums.data(), out.pixels.data() + y * row);
  return out;
}

Image centre_crop(const Image& image, std::int64_t width, std::int64_t height, double share) {
  const auto across = static_cast<double>(image.width), down = static_cast<double>(image.height);
  const double wide = std::nearbyint(static_cast<double>(width) / share);
  const double high = std::nearbyint(static_cast<double>(height) / share);
  // The longer side is cut to whole pixels, as torchvision does.
  const auto full_width = static_cast<std::int64_t>(std::max(wide, high * across / down));
  const auto full_height = static_cast<std::int64_t>(std::max(high, wide * down / across));
  const auto middle = [](std::int64_t full, std::int64_t part) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(full - part) / 2));
  };
  return resampled(image, {0, 0, image.width, image.height}, {full_width, middle(full_width, width), width},
                   {full_height, middle(full_height, height), height});
}

}  // namespace dlrun::runtime
