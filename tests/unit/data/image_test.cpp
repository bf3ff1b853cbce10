// Decoding what the world's image folders hold, and scaling it.
#include "runtime/data/images/image.hpp"

#include <doctest/doctest.h>

#include "image_support.hpp"
#include "runtime/data/images/exif.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

Result<Image> decode(const std::string& file) {
  return decode_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "a.jpg");
}

std::array<int, 3> pixel(const Image& image, int x, int y) {
  const std::uint8_t* at = image.pixels.data() + (y * image.width + x) * 3;
  return {at[0], at[1], at[2]};
}

// JPEG loses a little.
bool near(const std::array<int, 3>& left, const std::array<int, 3>& right, int by = 6) {
  for (std::size_t i = 0; i < 3; ++i)
    if (std::abs(left[i] - right[i]) > by) return false;
  return true;
}

std::vector<std::uint8_t> left_red_right_blue(int x, int) {
  return x < 20 ? std::vector<std::uint8_t>{250, 10, 20} : std::vector<std::uint8_t>{5, 15, 240};
}

}  // namespace

TEST_CASE("a PNG that was written is read back as it was, grey or in colour; other channels are refused") {
  const std::vector<std::uint8_t> colour{1, 2, 3, 40, 50, 60, 250, 251, 252, 0, 0, 255, 7, 8, 9, 10, 11, 12};
  const auto bytes = [](const std::string& file) {
    return std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  };
  const std::string written = encode_png(colour, 3, 2, 3).value();
  const Image read = decode_png(bytes(written), "colour").value();
  CHECK(read.width == 3);
  CHECK(read.height == 2);
  CHECK(read.pixels == colour);
  const std::vector<std::uint8_t> grey{0, 100, 255, 9};
  const std::string in_grey = encode_png(grey, 2, 2, 1).value();
  CHECK(decode_png(bytes(in_grey), "grey")->pixels ==
        std::vector<std::uint8_t>{0, 0, 0, 100, 100, 100, 255, 255, 255, 9, 9, 9});
  CHECK(encode_png(grey, 1, 2, 2).error().what == "PNG: 4 numbers in 2 channels are not an image of 1 x 2");
  CHECK_FALSE(encode_png(grey, 3, 3, 1).has_value());
}

TEST_CASE("a colour JPEG") {
  const Image image = decode(jpeg_of(40, 30, left_red_right_blue)).value();
  CHECK(image.width == 40);
  CHECK(image.height == 30);
  CHECK(near(pixel(image, 3, 7), {250, 10, 20}));
  CHECK(near(pixel(image, 36, 28), {5, 15, 240}));
}

TEST_CASE("a grey JPEG gets three equal channels") {
  const auto grey = [](int, int y) { return std::vector<std::uint8_t>{static_cast<std::uint8_t>(8 * y)}; };
  const Image image = decode(jpeg_of(16, 16, grey, {JCS_GRAYSCALE, 1})).value();
  CHECK(near(pixel(image, 5, 10), {80, 80, 80}));
}

TEST_CASE("a CMYK JPEG is converted; Adobe's inks are inverted") {
  // Cyan 0, magenta 1, yellow 1, black 0 is red; inverted: 255, 0, 0, 255.
  const auto red = [](int, int) { return std::vector<std::uint8_t>{255, 0, 0, 255}; };
  const std::string file = jpeg_of(16, 16, red, {JCS_CMYK, 4});
  REQUIRE(file.find("Adobe") != std::string::npos);
  CHECK(near(pixel(decode(file).value(), 8, 8), {255, 0, 0}));
}

TEST_CASE("a camera's orientation is obeyed: 40 x 30 on its side is 30 x 40") {
  const std::string file = jpeg_of(40, 30, left_red_right_blue, {JCS_RGB, 3, exif_of(6)});
  const Image image = decode(file).value();
  CHECK(image.width == 30);
  CHECK(image.height == 40);
  CHECK(near(pixel(image, 15, 2), {250, 10, 20}));  // what was left is above
  CHECK(near(pixel(image, 15, 38), {5, 15, 240}));
}

TEST_CASE("all eight orientations") {
  // 1 2 3
  // 4 5 6
  Image image{.width = 3, .height = 2, .pixels = {}};
  for (std::uint8_t i = 1; i <= 6; ++i) image.pixels.insert(image.pixels.end(), 3, i);
  const auto as_text = [](const Image& of) {
    std::string out;
    for (int y = 0; y < of.height; ++y) {
      if (y > 0) out += '/';
      for (int x = 0; x < of.width; ++x) out += static_cast<char>('0' + pixel(of, x, y)[0]);
    }
    return out;
  };
  const std::array<std::string, 8> expected{"123/456",  "321/654",  "654/321",  "456/123",
                                            "14/25/36", "41/52/63", "63/52/41", "36/25/14"};
  for (int orientation = 1; orientation <= 8; ++orientation)
    CHECK(as_text(turned(image, orientation)) == expected[static_cast<std::size_t>(orientation - 1)]);
}

TEST_CASE("EXIF that is cut off or says nonsense says nothing") {
  const auto read = [](const std::string& marker) {
    return exif_orientation({reinterpret_cast<const std::uint8_t*>(marker.data()), marker.size()});
  };
  CHECK(read(exif_of(8)) == 8);
  CHECK_FALSE(read(exif_of(9)).has_value());
  CHECK_FALSE(read(exif_of(0)).has_value());
  for (std::size_t length = 0; length < 25; ++length)
    CHECK_FALSE(read(exif_of(3).substr(0, length)).has_value());
  std::string far_away = exif_of(3);
  far_away[6 + 4] = '\x7f';  // the directory's offset
  CHECK_FALSE(read(far_away).has_value());
}

TEST_CASE("PNG: colour, grey, 16 bits, a palette's transparency") {
  const std::string colour = png_of<std::uint8_t>(2, 1, PNG_FORMAT_RGB, {1, 2, 3, 250, 251, 252});
  CHECK(pixel(decode(colour).value(), 1, 0) == std::array{250, 251, 252});
  const std::string grey = png_of<std::uint8_t>(1, 1, PNG_FORMAT_GRAY, {77});
  CHECK(pixel(decode(grey).value(), 0, 0) == std::array{77, 77, 77});
  // 16 bits are linear in libpng's simple interface: 0.2158 is sRGB's 128.
  const std::string deep = png_of<std::uint16_t>(1, 1, PNG_FORMAT_LINEAR_RGB, {14146, 0, 65535});
  CHECK(near(pixel(decode(deep).value(), 0, 0), {128, 0, 255}, 1));
  const std::string clear = png_of<std::uint8_t>(1, 1, PNG_FORMAT_RGBA, {200, 100, 50, 0});
  CHECK(pixel(decode(clear).value(), 0, 0) == std::array{0, 0, 0});
}

TEST_CASE("what is damaged or no image is named, and no pixel is made up") {
  const auto refusal = [](const std::string& file) { return decode(file).error().text(); };
  CHECK(refusal("") == "a.jpg: the file is empty (0 bytes)");
  CHECK(refusal("GIF89a") == "a.jpg: neither JPEG nor PNG: it starts with 47 49");
  const std::string jpeg = jpeg_of(64, 64, left_red_right_blue);
  CHECK(refusal(jpeg.substr(0, jpeg.size() * 9 / 10)) == "a.jpg: JPEG: the image data ends early");
  CHECK(refusal(jpeg.substr(0, 3)).find("a.jpg: JPEG: ") == 0);
  const std::string png = png_of<std::uint8_t>(8, 8, PNG_FORMAT_GRAY, std::vector<std::uint8_t>(64, 9));
  CHECK(refusal(png.substr(0, png.size() / 2)).find("a.jpg: PNG: ") == 0);
  std::string changed = png;
  changed[png.size() - 25] ^= 0x55;  // within the pixels: their checksum tells
  CHECK(refusal(changed).find("a.jpg: PNG: ") == 0);
}

TEST_CASE("scaling covers the wanted size and cuts the rest from both sides alike") {
  Image wide{.width = 40, .height = 20, .pixels = {}};
  for (int y = 0; y < 20; ++y)
    for (int x = 0; x < 40; ++x)
      for (int c = 0; c < 3; ++c) wide.pixels.push_back(static_cast<std::uint8_t>(x * 6));
  const Image small = fitted(wide, 10, 10);
  CHECK(small.width == 10);
  CHECK(near(pixel(small, 0, 5), {63, 63, 63}, 3));     // columns 10 and 11 of 40
  CHECK(near(pixel(small, 9, 5), {171, 171, 171}, 3));  // columns 28 and 29
  CHECK(near(pixel(fitted(wide, 80, 40), 40, 20), {120, 120, 120}, 3));
  Image one{.width = 1, .height = 1, .pixels = {9, 8, 7}};
  CHECK(pixel(fitted(one, 5, 3), 4, 2) == std::array{9, 8, 7});
}
