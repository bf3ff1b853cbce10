// See sample_grid.hpp.
#include "runtime/train/report/sample_grid.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "runtime/data/images/image.hpp"
#include "src/base/file.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::int64_t max_per_row = 8, gap = 2;  // images; pixels between two

// A number of the model's as the byte that it would have been read from.
std::uint8_t byte_of(float value, const InputScaling& meaning, std::size_t channel) {
  const float byte = (value - meaning.shift[channel]) / meaning.scale[channel];
  return static_cast<std::uint8_t>(std::clamp(std::lround(byte), 0L, 255L));
}

// Tiles in rows: of one channel (grey) or three (in colour) an image is a tile, and of other channels each
// channel is one, an image's beside each other.
struct Grid {
  bool plain;                  // an image is a tile
  std::int64_t columns, rows;  // tiles
  std::int64_t height, width;  // pixels of all

  Grid(std::int64_t images, const InputShape& shape)
      : plain(shape.channels == 1 || shape.channels == 3),
        columns(std::min(plain ? images : shape.channels, max_per_row)),
        rows(std::clamp<std::int64_t>(plain ? images / max_per_row : images, 1, max_per_row)),
        height(rows * (shape.height + gap) - gap),
        width(columns * (shape.width + gap) - gap) {}

  std::int64_t images() const { return plain ? columns * rows : rows; }
  std::int64_t channels(const InputShape& shape) const { return plain ? shape.channels : columns; }
  std::int64_t bytes_per_pixel(const InputShape& shape) const { return plain ? shape.channels : 1; }
  // Where the byte of a channel at (y, x) of an image lies.
  std::size_t place(const InputShape& shape, std::int64_t image, std::int64_t channel, std::int64_t y,
                    std::int64_t x) const {
    const std::int64_t tile = plain ? image : image * columns + channel;
    const std::int64_t pixel =
        (tile / columns * (shape.height + gap) + y) * width + tile % columns * (shape.width + gap) + x;
    return static_cast<std::size_t>(plain ? pixel * shape.channels + channel : pixel);
  }
};

}  // namespace

Result<std::filesystem::path> write_sample_grid(Engine& engine, const InputShape& shape,
                                                const Conversion& conversion,
                                                const std::filesystem::path& folder, std::uint64_t epoch) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<float> images(static_cast<std::size_t>(engine.batch() * shape.height * shape.width) * channels);
  assert(engine.gan() != nullptr);
  TRY(engine.gan()->generate(images));
  const InputScaling meaning = input_scaling_of(conversion, channels);
  const Grid grid(engine.batch(), shape);
  const std::int64_t bytes = grid.bytes_per_pixel(shape), area = shape.height * shape.width;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(grid.height * grid.width * bytes), 255);
  for (std::int64_t image = 0; image < grid.images(); ++image)
    for (std::int64_t channel = 0; channel < grid.channels(shape); ++channel)
      for (std::int64_t at = 0; at < area; ++at) {
        const auto from = static_cast<std::size_t>((image * shape.channels + channel) * area + at);
        pixels[grid.place(shape, image, channel, at / shape.width, at % shape.width)] =
            byte_of(images[from], meaning, static_cast<std::size_t>(channel));
      }
  const std::filesystem::path path = folder / fmt::format("samples-epoch-{:04}.png", epoch);
  TRY(replace_file(path, TRY(encode_png(pixels, grid.width, grid.height, bytes)), Durability::none));
  return path;
}

}  // namespace dlrun::runtime
