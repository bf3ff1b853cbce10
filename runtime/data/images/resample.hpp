// Resampling as Pillow does it, bit for bit: a triangle filter as wide as the scale asks for, first along
// rows, then along columns, in whole numbers of 22 bits, rounded to a byte after each. So what is trained on
// is what a PyTorch user's torchvision.transforms give for the same crop.
#pragma once

#include "runtime/data/images/image.hpp"

namespace dlrun::runtime {

/// Which pixels of a result of `full` pixels are wanted: `count` from `first` on.
struct Axis {
  std::int64_t full = 0, first = 0, count = 0;
};

/// The pixels that a pixel of the result is made of, and how much of each, in 22 bits. All are positive, and
/// a pixel's sum to one up to the last bits, so that no result leaves the range of a byte.
struct Taps {
  static constexpr int kBits = 22;  // of a coefficient: a byte times it, with its sign, is 31
  struct Span {
    std::int64_t first = 0;
    std::size_t begin = 0, count = 0;  // of the coefficients
  };
  std::vector<Span> pixels;
  std::vector<std::int32_t> coefficients;
};

/// For an input of `extent` pixels.
Taps taps_of(std::int64_t extent, const Axis& axis);

/// The box, scaled to columns.full x rows.full, of which the wanted part is returned. Nothing outside of the
/// box is looked at.
Image resampled(const Image& image, const Box& box, const Axis& columns, const Axis& rows);

/// torchvision's resized_crop: the box, scaled to width x height.
inline Image resized_crop(const Image& image, const Box& box, std::int64_t width, std::int64_t height) {
  return resampled(image, box, {width, 0, width}, {height, 0, height});
}

/// Which part of an image, scaled to what, of which some pixels are wanted.
struct Scaling {
  Box box;
  Axis columns, rows;
};

/// torchvision's Resize and CenterCrop: scaled so that `share` of the shorter side is cut out of the middle.
/// The shares are rounded to a pixel: 0.875 of 224 is 256.
Scaling centre_scaling(const Box& whole, std::int64_t width, std::int64_t height, double share);
inline Image centre_crop(const Image& image, std::int64_t width, std::int64_t height, double share) {
  const Scaling by = centre_scaling({0, 0, image.width, image.height}, width, height, share);
  return resampled(image, by.box, by.columns, by.rows);
}

}  // namespace dlrun::runtime
