// JPEG and PNG files made to order.
#pragma once

#include <cstdio>
#include <functional>

#include <jpeglib.h>
#include <png.h>

#include "tests/unit/data/support.hpp"

namespace dlrun::test {

using Painter = std::function<std::vector<std::uint8_t>(int x, int y)>;  // a pixel's components

struct JpegKind {
  J_COLOR_SPACE colours = JCS_RGB;
  int components = 3;
  std::string exif = {};  // the content of an APP1 marker
  bool progressive = false;
  int sampling = 0;  // 2: half of the colours each way, as most cameras have it; 0: libjpeg's own choice
};

inline std::string jpeg_of(int width, int height, const Painter& paint, const JpegKind& kind = {}) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.image_height = static_cast<JDIMENSION>(height);
  encoder.input_components = kind.components;
  encoder.in_color_space = kind.colours;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, 100, TRUE);
  if (kind.progressive) jpeg_simple_progression(&encoder);
  if (kind.sampling > 0)
    encoder.comp_info[0].h_samp_factor = encoder.comp_info[0].v_samp_factor = kind.sampling;
  jpeg_start_compress(&encoder, TRUE);
  if (!kind.exif.empty())
    jpeg_write_marker(&encoder, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(kind.exif.data()),
                      static_cast<unsigned>(kind.exif.size()));
  for (int y = 0; y < height; ++y) {
    std::vector<std::uint8_t> row;
    for (int x = 0; x < width; ++x)
      for (const std::uint8_t part : paint(x, y)) row.push_back(part);
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&encoder, rows, 1);
  }
  jpeg_finish_compress(&encoder);
  std::string out(reinterpret_cast<char*>(memory), size);
  jpeg_destroy_compress(&encoder);
  std::free(memory);
  return out;
}

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
