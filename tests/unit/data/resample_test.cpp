// Cropping, scaling and changes of colour against Pillow's: the sums were computed by Pillow 9.4 from the
// same pixels. And what is decoded of a part of a JPEG against all of it.
#include "runtime/data/images/resample.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "image_support.hpp"
#include "runtime/data/images/random_crop.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

std::uint8_t pixel(int x, int y, int channel) {
  return static_cast<std::uint8_t>((x * 37 + y * 59 + channel * 101) * ((x * y + 7 * channel + 3) % 11 + 1));
}

Image picture(int width = 37, int height = 29) {
  Image out{.width = width, .height = height, .pixels = {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int channel = 0; channel < 3; ++channel) out.pixels.push_back(pixel(x, y, channel));
  return out;
}

std::uint64_t sum_of(const Image& image) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : image.pixels) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

Image changed(ColorChange what, double factor) {
  Image out = picture();
  change_color(out, what, factor);
  return out;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

TEST_CASE("a cropped and scaled image is Pillow's, byte for byte") {
  const Image from = picture();
  CHECK(sum_of(resized_crop(from, {0, 0, 37, 29}, 8, 6)) == 0xbc97d5d1209b8156u);
  CHECK(sum_of(resized_crop(from, {5, 3, 20, 17}, 12, 12)) == 0x3c5a9e244cfd3f6bu);
  CHECK(sum_of(resized_crop(from, {2, 1, 9, 7}, 24, 16)) == 0x2160ebbc53465d38u);
  CHECK(sum_of(resized_crop(from, {0, 0, 37, 29}, 37, 29)) == 0x1bc6c33c3aeff883u);
  CHECK(sum_of(resized_crop(from, {30, 20, 7, 9}, 5, 31)) == 0x83c0eeca96e8b469u);
  CHECK(resized_crop(from, {5, 3, 20, 17}, 2, 2).pixels ==
        std::vector<std::uint8_t>{122, 123, 139, 126, 122, 130, 126, 119, 126, 125, 128, 139});
}

TEST_CASE("a centre crop is torchvision's Resize(16) and CenterCrop(14)") {
  CHECK(sum_of(centre_crop(picture(), 14, 14, 0.875)) == 0xdeb3b5e12519eb81u);
}

TEST_CASE("changes of colour are Pillow's, byte for byte") {
  CHECK(sum_of(changed(ColorChange::brightness, 0.6)) == 0xeacd8c29ffaaea1au);
  CHECK(sum_of(changed(ColorChange::brightness, 1.7)) == 0xb6f858c6d7fd7761u);
  CHECK(sum_of(changed(ColorChange::contrast, 0.3)) == 0x5fde8762a80bd86au);
  CHECK(sum_of(changed(ColorChange::contrast, 1.4)) == 0xbe94ff6897ef8318u);
  CHECK(sum_of(changed(ColorChange::saturation, 0.5)) == 0x924633c77877ecdau);
  CHECK(sum_of(changed(ColorChange::saturation, 1.9)) == 0x6533821d9b681136u);
  CHECK(sum_of(changed(ColorChange::hue, 0.1)) == 0xaed0b85ce0136b5eu);
  CHECK(sum_of(changed(ColorChange::hue, -0.3)) == 0x463072c6c3240fb8u);
}

TEST_CASE("random crops have PyTorch's distribution: area and log ratio uniform, places too") {
  constexpr std::uint64_t draws = 20000;
  double area = 0, log_ratio = 0, left = 0;
  std::size_t small = 0;
  for (std::uint64_t key = 0; key < draws; ++key) {
    const Box box = random_crop({}, 2000, 2000, key);
    const double share = static_cast<double>(box.width * box.height) / 4e6;
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    CHECK(share > 0.0799);
    CHECK(std::abs(std::log(ratio)) < std::log(4.0 / 3) + 1e-2);
    area += share, log_ratio += std::log(ratio);
    if (share < 0.31) ++small;
    if (box.width < 2000) left += static_cast<double>(box.left) / static_cast<double>(2000 - box.width);
  }
  // Areas near 1 need a ratio near 1, so that more of them are drawn again: torchvision's loop gives these.
  CHECK(std::abs(area / draws - 0.478) < 6e-3);
  CHECK(std::abs(static_cast<double>(small) / draws - 0.289) < 0.01);
  CHECK(std::abs(log_ratio / draws) < 5e-3);
  CHECK(std::abs(left / draws - 0.5) < 0.01);
}

TEST_CASE("where no crop fits, the centred part whose ratio is allowed is taken") {
  CHECK(random_crop({}, 1000, 10, 1) == Box{493, 0, 13, 10});
  CHECK(random_crop({}, 9, 900, 1) == Box{0, 444, 9, 12});
}

TEST_CASE("jitter is a function of its key, and within its bounds") {
  Image first = picture(), again = picture(), other = picture();
  const ColorJitter by{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1};
  jitter(by, first, 5), jitter(by, again, 5), jitter(by, other, 6);
  CHECK(first.pixels == again.pixels);
  CHECK(first.pixels != other.pixels);
  jitter({}, other = picture(), 6);
  CHECK(other.pixels == picture().pixels);
}

TEST_CASE("a part of a JPEG has the pixels of the whole, whatever its colours, order and orientation") {
  for (const auto& [kind, sampling] : {std::pair<JpegKind, int>{{}, 2},
                                       {{}, 1},
                                       {{.progressive = true}, 2},
                                       {{JCS_GRAYSCALE, 1}, 1},
                                       {{JCS_RGB, 3, exif_of(6)}, 2}}) {
    JpegKind with = kind;
    with.sampling = sampling;
    const std::string file = jpeg_of(
        203, 151,
        [&](int x, int y) {
          std::vector<std::uint8_t> out{pixel(x / 3, y / 5, 0), pixel(x / 2, y, 1), pixel(x, y / 4, 2)};
          out.resize(static_cast<std::size_t>(with.components));
          return out;
        },
        with);
    const Image whole = *decode_image(bytes_of(file), "whole");
    for (std::uint64_t key = 0; key < 40; ++key) {
      const auto part = decode_box(bytes_of(file), "part", [&](std::int64_t width, std::int64_t height) {
        CHECK(width == whole.width);
        CHECK(height == whole.height);
        return random_crop({.min_scale = 0.02}, width, height, key);
      });
      REQUIRE(part.has_value());
      const Box box = random_crop({.min_scale = 0.02}, whole.width, whole.height, key);
      CHECK(resized_crop(part->image, part->box, box.width, box.height).pixels ==
            resized_crop(whole, box, box.width, box.height).pixels);
    }
  }
}
