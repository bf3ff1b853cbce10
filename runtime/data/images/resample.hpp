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

/// The box, scaled to columns.full x rows.full, of which the wanted part is returned. Nothing outside of the
/// box is looked at.
Image resampled(const Image& image, const Box& box, const Axis& columns, const Axis& rows);

/// torchvision's resized_crop: the box, scaled to width x height.
inline Image resized_crop(const Image& image, const Box& box, std::int64_t width, std::int64_t height) {
  return resampled(image, box, {width, 0, width}, {height, 0, height});
}

/// torchvision's Resize and CenterCrop: scaled so that `share` of the shorter side is cut out of the middle.
/// The shares are rounded to a pixel: 0.875 of 224 is 256.
Image centre_crop(const Image& image, std::int64_t width, std::int64_t height, double share);

}  // namespace dlrun::runtime
