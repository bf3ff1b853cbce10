// JPEG files made to order, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <jpeglib.h>

namespace dlrun::test {

using Painter = std::function<std::vector<std::uint8_t>(int x, int y)>;  // a pixel's components

struct JpegKind {
  J_COLOR_SPACE colours = JCS_RGB;
  int components = 3;
  std::string exif = {};  // the content of an APP1 marker
  bool progressive = false;
  int quality = 100;
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
  jpeg_set_quality(&encoder, kind.quality, TRUE);
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

}  // namespace dlrun::test
