// See resample.hpp.
#include "runtime/data/images/resample.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/simd.hpp"

namespace dlrun::runtime {
namespace {

constexpr int kBits = Taps::kBits;

}  // namespace

// Pillow's precompute_coeffs and normalize_coeffs_8bpc, for an input that begins at the box.
Taps taps_of(std::int64_t extent, const Axis& axis) {
  const double scale = static_cast<double>(extent) / static_cast<double>(axis.full);
  const double support = std::max(scale, 1.0), narrow = 1.0 / support;
  Taps out;
  std::vector<double> weights;
  for (std::int64_t i = axis.first; i < axis.first + axis.count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
    const auto last = std::min(extent, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
    weights.clear();
    double sum = 0;
    for (std::int64_t pixel = first; pixel < last; ++pixel) {
      weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(pixel) - centre + 0.5) * narrow)));
      sum += weights.back();
    }
    out.pixels.push_back({first, out.coefficients.size(), weights.size()});
    for (const double weight : weights)
      out.coefficients.push_back(static_cast<std::int32_t>(std::floor(0.5 + weight / sum * (1 << kBits))));
  }
  return out;
}

namespace {

using kernels::Bytes16;
using kernels::Ints16;
constexpr std::size_t kRows =
    4;  // side by side: the three colours of each, and a fourth lane that nobody reads

using Words4 = std::uint32_t __attribute__((vector_size(16)));

DLRUN_INLINE std::uint32_t word_at(const std::uint8_t* bytes) {
  std::uint32_t out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

// Four rows of pixels, a vector per column. A byte behind each row's last pixel is read.
DLRUN_VERSIONS void gather_rows(const std::uint8_t* const* rows, std::size_t width, std::int32_t* out) {
  for (std::size_t x = 0; x < width; ++x) {
    const Words4 words = {word_at(rows[0] + 3 * x), word_at(rows[1] + 3 * x), word_at(rows[2] + 3 * x),
                          word_at(rows[3] + 3 * x)};
    Bytes16 bytes;
    std::memcpy(&bytes, &words, sizeof bytes);
    const Ints16 lanes = __builtin_convertvector(bytes, Ints16);
    std::memcpy(out + x * kernels::kLanes, &lanes, sizeof lanes);
  }
}

// Four rows to fewer or more pixels. A byte behind each row's last pixel is written.
DLRUN_VERSIONS void scale_rows(const std::int32_t* in, const Taps& taps, std::uint8_t* const* out) {
  for (std::size_t i = 0; i < taps.pixels.size(); ++i) {
    const Taps::Span& span = taps.pixels[i];
    Ints16 sum = Ints16{} + (1 << (kBits - 1));
    const std::int32_t* from = in + static_cast<std::size_t>(span.first) * kernels::kLanes;
    for (std::size_t k = 0; k < span.count; ++k, from += kernels::kLanes) {
      Ints16 lanes;
      std::memcpy(&lanes, from, sizeof lanes);
      sum += lanes * taps.coefficients[span.begin + k];
    }
    const Bytes16 bytes = __builtin_convertvector(sum >> kBits, Bytes16);
    Words4 words;
    std::memcpy(&words, &bytes, sizeof words);
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::uint32_t word = words[row];
      std::memcpy(out[row] + 3 * i, &word, sizeof word);
    }
  }
}

// The same along a column, for a row of bytes, whose length is rounded up to whole vectors.
DLRUN_VERSIONS void mix_rows(const std::uint8_t* in, std::size_t stride, const Taps& taps,
                             const Taps::Span& span, std::uint8_t* out) {
  for (std::size_t at = 0; at < stride; at += kernels::kLanes) {
    Ints16 sum = Ints16{} + (1 << (kBits - 1));
    const std::uint8_t* from = in + at;
    for (std::size_t k = 0; k < span.count; ++k, from += stride) {
      Bytes16 bytes;
      std::memcpy(&bytes, from, sizeof bytes);
      sum += __builtin_convertvector(bytes, Ints16) * taps.coefficients[span.begin + k];
    }
    const Bytes16 bytes = __builtin_convertvector(sum >> kBits, Bytes16);
    std::memcpy(out + at, &bytes, sizeof bytes);
  }
}

// All rows of the box that are needed, narrowed: rows of `stride` bytes.
std::vector<std::uint8_t> narrowed(const Image& image, const Box& box, std::int64_t first, std::int64_t last,
                                   const Taps& across, std::size_t stride) {
  const auto count = static_cast<std::size_t>(last - first), bytes = static_cast<std::size_t>(box.width) * 3;
  std::vector<std::uint8_t> out(stride * (count + kRows));
  std::vector<std::int32_t> columns(static_cast<std::size_t>(box.width) * kernels::kLanes);
  std::vector<std::uint8_t> end(bytes + 1);  // the image's last row has no byte behind it
  for (std::size_t y = 0; y < count; y += kRows) {
    const std::uint8_t* from[kRows];
    std::uint8_t* to[kRows];
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::int64_t line = box.top + std::min(first + static_cast<std::int64_t>(y + row), last - 1);
      from[row] = image.pixels.data() + (line * image.width + box.left) * 3;
      to[row] = out.data() + (y + row) * stride;
      if (line + 1 < image.height) continue;
      std::copy_n(from[row], bytes, end.data());
      from[row] = end.data();
    }
    gather_rows(from, static_cast<std::size_t>(box.width), columns.data());
    scale_rows(columns.data(), across, to);
  }
  return out;
}

}  // namespace

Image resampled(const Image& image, const Box& box, const Axis& columns, const Axis& rows) {
  const Taps across = taps_of(box.width, columns), down = taps_of(box.height, rows);
  const auto row = static_cast<std::size_t>(columns.count) * 3;
  const std::size_t stride = row / kernels::kLanes * kernels::kLanes + kernels::kLanes;
  const std::int64_t first = down.pixels.front().first;
  const auto last = down.pixels.back().first + static_cast<std::int64_t>(down.pixels.back().count);
  const std::vector<std::uint8_t> narrow = narrowed(image, box, first, last, across, stride);
  Image out{.width = columns.count, .height = rows.count, .pixels = {}};
  out.pixels.resize(row * down.pixels.size() + stride);
  for (std::size_t y = 0; y < down.pixels.size(); ++y) {
    const Taps::Span& span = down.pixels[y];
    mix_rows(narrow.data() + static_cast<std::size_t>(span.first - first) * stride, stride, down, span,
             out.pixels.data() + y * row);
  }
  out.pixels.resize(row * down.pixels.size());
  return out;
}

Scaling centre_scaling(const Box& whole, std::int64_t width, std::int64_t height, double share) {
  const auto across = static_cast<double>(whole.width), down = static_cast<double>(whole.height);
  const double wide = std::nearbyint(static_cast<double>(width) / share);
  const double high = std::nearbyint(static_cast<double>(height) / share);
  // The longer side is cut to whole pixels, as torchvision does.
  const auto full_width = static_cast<std::int64_t>(std::max(wide, high * across / down));
  const auto full_height = static_cast<std::int64_t>(std::max(high, wide * down / across));
  const auto middle = [](std::int64_t full, std::int64_t part) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(full - part) / 2));
  };
  return {whole,
          {full_width, middle(full_width, width), width},
          {full_height, middle(full_height, height), height}};
}

}  // namespace dlrun::runtime
