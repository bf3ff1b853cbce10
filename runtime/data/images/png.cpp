// PNG by libpng's simplified interface, which turns every kind of PNG into the one that is asked for: it
// handles palettes, 16 bits, grey and interlace. Transparent pixels are laid on black.
#include <png.h>

#include "runtime/data/images/image.hpp"

namespace dlrun::runtime {

Result<Image> decode_png(std::span<const std::uint8_t> file, const std::string& name) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto damaged = [&] {
    Error error{.kind = ErrorKind::input, .what = fmt::format("PNG: {}", png.message), .where = name};
    png_image_free(&png);
    return fail(std::move(error));
  };
  if (png_image_begin_read_from_memory(&png, file.data(), file.size()) == 0) return damaged();
  if (std::int64_t{png.width} * png.height > kMostPixels) {
    png_image_free(&png);
    return fail({.kind = ErrorKind::input,
                 .what = fmt::format("PNG: {} x {} pixels are too many", png.width, png.height),
                 .where = name});
  }
  png.format = PNG_FORMAT_RGB;
  Image out{.width = png.width, .height = png.height, .pixels = {}};
  out.pixels.resize(PNG_IMAGE_SIZE(png));
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&png, &black, out.pixels.data(), 0, nullptr) == 0) return damaged();
  return out;
}

}  // namespace dlrun::runtime
