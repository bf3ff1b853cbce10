// See random_crop.hpp.
#include "runtime/data/images/random_crop.hpp"

#include <cmath>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

// A number in [low, high) from a key.
double uniform(std::uint64_t key, double low, double high) {
  return low + (high - low) * static_cast<double>(mix(key) >> 11) * 0x1p-53;
}

Box centred(const RandomResizedCrop& of, std::int64_t width, std::int64_t height) {
  const auto wide = static_cast<double>(width), high = static_cast<double>(height);
  Box out{.width = width, .height = height};
  if (wide / high < of.min_ratio) out.height = static_cast<std::int64_t>(std::nearbyint(wide / of.min_ratio));
  if (wide / high > of.max_ratio) out.width = static_cast<std::int64_t>(std::nearbyint(high * of.max_ratio));
  out.left = (width - out.width) / 2;
  out.top = (height - out.height) / 2;
  return out;
}

}  // namespace

Box random_crop(const RandomResizedCrop& of, std::int64_t width, std::int64_t height, std::uint64_t key) {
  constexpr std::uint64_t tries = 10;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  for (std::uint64_t i = 0; i < tries; ++i) {
    const std::uint64_t draw = mix(key, i);
    const double target = area * uniform(mix(draw, 0), of.min_scale, of.max_scale);
    const double ratio = std::exp(uniform(mix(draw, 1), std::log(of.min_ratio), std::log(of.max_ratio)));
    const auto wide = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target * ratio)));
    const auto high = static_cast<std::int64_t>(std::nearbyint(std::sqrt(target / ratio)));
    if (wide < 1 || high < 1 || wide > width || high > height) continue;
    const auto at = [&](std::uint64_t which, std::int64_t free) {
      return static_cast<std::int64_t>(below(mix(draw, which), static_cast<std::uint64_t>(free + 1)));
    };
    return {.left = at(2, width - wide), .top = at(3, height - high), .width = wide, .height = high};
  }
  return centred(of, width, height);
}

void jitter(const ColorJitter& by, Image& image, std::uint64_t key) {
  const double most[] = {by.brightness, by.contrast, by.saturation, by.hue};
  std::size_t order[] = {0, 1, 2, 3};
  for (std::size_t i = 3; i > 0; --i) std::swap(order[i], order[below(mix(key, 8, i), i + 1)]);
  for (const std::size_t which : order) {
    if (most[which] <= 0) continue;
    const auto what = static_cast<ColorChange>(which);
    const double middle = what == ColorChange::hue ? 0 : 1;
    const double low = middle - most[which];
    change_color(image, what,
                 uniform(mix(key, which), middle > 0 ? std::max(0.0, low) : low, middle + most[which]));
  }
}

}  // namespace dlrun::runtime
