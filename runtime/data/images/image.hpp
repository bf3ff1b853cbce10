// Image: pixels of a decoded photograph, three bytes each (red, green, blue), row by row; and the ways to
// make one of a JPEG or PNG file and to bring it to the size that a model takes. Grey images get three equal
// channels, CMYK ones are converted, 16-bit ones rounded, transparency is dropped, and a camera's note of how
// it was held is obeyed. What is damaged is an Error: no pixel is made up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct Image {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // height x width x 3
};

inline constexpr std::int64_t kMaxPixels = std::int64_t{1}
                                           << 28;  // of one image; more is a decompression bomb

/// Decodes a JPEG or a PNG; the first bytes of the file decide which, not its name.
Result<Image> decode_image(std::span<const std::uint8_t> file, const std::string& name);
Result<Image> decode_jpeg(std::span<const std::uint8_t> file, const std::string& name);
Result<Image> decode_png(std::span<const std::uint8_t> file, const std::string& name);

/// A part of an image, in pixels.
struct Box {
  std::int64_t left = 0, top = 0, width = 0, height = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Chooses the part that is needed of an upright image of this width and height.
using ChooseBox = std::function<Box(std::int64_t width, std::int64_t height)>;

/// An image that has at least the box that was chosen, and where it lies in it.
struct DecodedBox {
  Image image;
  Box box;
};

/// Decodes what the chosen box needs: the same pixels as decode_image, in less time. Damage outside of it may
/// go unnoticed.
Result<DecodedBox> decode_box(std::span<const std::uint8_t> file, const std::string& name,
                              const ChooseBox& choose);
Result<DecodedBox> decode_jpeg_box(std::span<const std::uint8_t> file, const std::string& name,
                                   const ChooseBox& choose);

/// Grey pixels (one channel) or red, green and blue ones, row by row, as a PNG; other channels are refused.
Result<std::string> encode_png(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height,
                               std::int64_t channels);

/// EXIF's eight ways to hold a camera; 1 is upright.
Image turned(Image image, int orientation);

/// The largest centred part of the wanted proportions, scaled to width x height; each pixel is the weighted
/// mean of all that it covers (a triangle filter, as wide as the scale asks for).
Image fitted(const Image& image, std::int64_t width, std::int64_t height);

}  // namespace dlrun::runtime
