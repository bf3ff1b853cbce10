// PNG files made to order, and what JPEG files may have beside their pixels.
#pragma once

#include <png.h>

#include "tests/unit/data/jpeg_file.hpp"
#include "tests/unit/data/support.hpp"

namespace dlrun::test {

// `format` is libpng's; 16-bit ones take values twice as wide.
template <class Number>
std::string png_of(int width, int height, png_uint_32 format, const std::vector<Number>& values) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = format;
  png_alloc_size_t size = 0;
  if (png_image_write_get_memory_size(png, size, 0, values.data(), 0, nullptr) == 0) std::abort();
  std::string out(size, '\0');
  if (png_image_write_to_memory(&png, out.data(), &size, 0, values.data(), 0, nullptr) == 0) std::abort();
  out.resize(size);
  return out;
}

// EXIF with nothing but an orientation.
inline std::string exif_of(int orientation) {
  std::string out("Exif\0\0MM\0*\0\0\0\b\0\1\1\x12\0\3\0\0\0\1\0\0\0\0\0\0\0\0", 6 + 8 + 2 + 12 + 4);
  out[6 + 8 + 2 + 9] = static_cast<char>(orientation);
  return out;
}

}  // namespace dlrun::test
