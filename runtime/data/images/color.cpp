// The changes of colour as Pillow's ImageEnhance and its conversion to HSV compute them: f32, cut or rounded
// to bytes at the same places.
#include <algorithm>
#include <cmath>

#include "runtime/data/images/random_crop.hpp"

namespace dlrun::runtime {
namespace {

// From `from` towards the pixel, and beyond it for a factor above 1.
std::uint8_t blended(std::uint8_t from, std::uint8_t pixel, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(pixel - from);
  if (value <= 0) return 0;
  return value >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(value);
}

std::uint8_t mean_grey(const Image& image) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) sum += grey_of(image.pixels.data() + i);
  const double pixels = static_cast<double>(image.pixels.size()) / 3;
  return static_cast<std::uint8_t>(std::floor(static_cast<double>(sum) / pixels + 0.5));
}

std::uint8_t byte_of(double value) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, 255));
}

struct Hsv {
  std::uint8_t hue, saturation, value;
};

Hsv to_hsv(const std::uint8_t* pixel) {
  const std::uint8_t high = std::max({pixel[0], pixel[1], pixel[2]});
  const std::uint8_t low = std::min({pixel[0], pixel[1], pixel[2]});
  if (high == low) return {0, 0, high};
  const auto range = static_cast<float>(high - low);
  const auto away = [&](int colour) { return static_cast<float>(high - pixel[colour]) / range; };
  float hue = away(2) - away(1);
  if (pixel[0] != high) hue = static_cast<float>(4.0 + away(1) - away(0));
  if (pixel[0] != high && pixel[1] == high) hue = static_cast<float>(2.0 + away(0) - away(2));
  hue = static_cast<float>(std::fmod(hue / 6.0 + 1.0, 1.0));
  return {byte_of(hue * 255.0), byte_of(static_cast<double>(range / static_cast<float>(high)) * 255.0), high};
}

void from_hsv(const Hsv& of, std::uint8_t* pixel) {
  const auto sixth = static_cast<float>(of.hue * 6.0 / 255.0);
  const auto saturation = static_cast<float>(of.saturation / 255.0);
  const float sector = std::floor(sixth), part = sixth - sector;
  const auto shade = [&](double by) {
    return static_cast<std::uint8_t>(std::clamp(std::round(of.value * by), 0.0, 255.0));
  };
  const std::uint8_t v = of.value, p = shade(1.0 - saturation), q = shade(1.0 - saturation * part),
                     t = shade(1.0 - saturation * (1.0 - part));
  const std::uint8_t table[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  if (of.saturation == 0) return static_cast<void>(std::fill_n(pixel, 3, v));
  std::copy_n(table[static_cast<int>(sector) % 6], 3, pixel);
}

}  // namespace

void change_color(Image& image, ColorChange what, double factor) {
  std::uint8_t* const end = image.pixels.data() + image.pixels.size();
  if (what == ColorChange::hue) {
    for (std::uint8_t* pixel = image.pixels.data(); pixel < end; pixel += 3) {
      Hsv color = to_hsv(pixel);
      color.hue = static_cast<std::uint8_t>(color.hue + static_cast<int>(factor * 255));
      from_hsv(color, pixel);
    }
    return;
  }
  const std::uint8_t flat = what == ColorChange::contrast ? mean_grey(image) : std::uint8_t{0};
  for (std::uint8_t* pixel = image.pixels.data(); pixel < end; pixel += 3) {
    const std::uint8_t from = what == ColorChange::saturation ? grey_of(pixel) : flat;
    for (int colour = 0; colour < 3; ++colour)
      pixel[colour] = blended(from, pixel[colour], static_cast<float>(factor));
  }
}

}  // namespace dlrun::runtime
