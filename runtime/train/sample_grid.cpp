// See sample_grid.hpp.
#include "runtime/train/sample_grid.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/data/images/image.hpp"
#include "src/base/file.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::int64_t most_a_row = 8, gap = 2;  // images; pixels between two

// A number of the model's as the byte that it would have been read from.
std::uint8_t byte_of(float value, const PixelMeaning& meaning, std::size_t channel) {
  const float byte = (value - meaning.shift[channel]) / meaning.scale[channel];
  return static_cast<std::uint8_t>(std::clamp(std::lround(byte), 0L, 255L));
}

struct Grid {
  std::int64_t columns, rows, height, width;  // images; pixels of all

  Grid(std::int64_t images, const InputShape& shape)
      : columns(std::min(images, most_a_row)),
        rows(std::clamp<std::int64_t>(images / most_a_row, 1, most_a_row)),
        height(rows * (shape.height + gap) - gap),
        width(columns * (shape.width + gap) - gap) {}
};

// Where the pixel (y, x) of image `number` lies.
std::int64_t place(const Grid& grid, const InputShape& shape, std::int64_t number, std::int64_t y,
                   std::int64_t x) {
  return (number / grid.columns * (shape.height + gap) + y) * grid.width +
         number % grid.columns * (shape.width + gap) + x;
}

}  // namespace

Result<std::filesystem::path> write_sample_grid(Engine& engine, const InputShape& shape,
                                                const Conversion& conversion,
                                                const std::filesystem::path& folder, std::uint64_t epoch) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  std::vector<float> images(static_cast<std::size_t>(engine.batch() * shape.height * shape.width) * channels);
  TRY(engine.generate(images));
  const PixelMeaning meaning = meaning_of(conversion, channels);
  const Grid grid(engine.batch(), shape);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(grid.height * grid.width) * channels, 255);
  std::size_t next = 0;
  for (std::int64_t number = 0; number < grid.columns * grid.rows; ++number)
    for (std::size_t channel = 0; channel < channels; ++channel)
      for (std::int64_t y = 0; y < shape.height; ++y)
        for (std::int64_t x = 0; x < shape.width; ++x)
          pixels[static_cast<std::size_t>(place(grid, shape, number, y, x)) * channels + channel] =
              byte_of(images[next++], meaning, channel);
  const std::filesystem::path path = folder / fmt::format("samples-epoch-{:04}.png", epoch);
  TRY(replace_file(path, TRY(encode_png(pixels, grid.width, grid.height, shape.channels)), Durability::none));
  return path;
}

}  // namespace dlrun::runtime
