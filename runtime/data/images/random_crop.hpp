// The random changes of a training image beyond a shift and a flip: torchvision's RandomResizedCrop and
// ColorJitter. Each draw is a pure function of its key, so that any worker, rank or resumed run makes the
// same image; the distributions are torchvision's, the numbers are not.
#pragma once

#include "runtime/data/images/resample.hpp"

namespace dlrun::runtime {

struct RandomResizedCrop {
  double min_scale = 0.08, max_scale = 1;           // the crop's share of the area
  double min_ratio = 3.0 / 4, max_ratio = 4.0 / 3;  // width over height, uniform in its logarithm
};

struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0;  // factors from 1 - x to 1 + x
  double hue = 0;                                       // a shift from -x to x of the circle of hues
  bool any() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
};

/// Ten tries; then the largest centred part whose ratio is allowed.
Box random_crop(const RandomResizedCrop& of, std::int64_t width, std::int64_t height, std::uint64_t key);

/// The four changes in an order that is drawn too, each rounded as Pillow does.
void jitter(const ColorJitter& by, Image& image, std::uint64_t key);

/// The luma of a pixel, as Pillow's conversion to L rounds it.
inline std::uint8_t grey_of(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

/// One change by a given factor, for tests against Pillow.
enum class ColorChange { brightness, contrast, saturation, hue };
void change_color(Image& image, ColorChange what, double factor);

}  // namespace dlrun::runtime
