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
  if (std::int64_t{png.width} * png.height > kMaxPixels) {
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

Result<std::string> encode_png(std::span<const std::uint8_t> pixels, std::int64_t width, std::int64_t height,
                               std::int64_t channels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if ((channels != 1 && channels != 3) || pixels.size() != PNG_IMAGE_SIZE(png))
    return fail(ErrorKind::input, "PNG: {} numbers in {} channels are not an image of {} x {}", pixels.size(),
                channels, width, height);
  std::string out(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t bytes = out.size();
  if (png_image_write_to_memory(&png, out.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
    return fail(ErrorKind::internal, "PNG: {}", png.message);
  out.resize(bytes);
  return out;
}

}  // namespace dlrun::runtime
