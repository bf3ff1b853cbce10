// What a GAN makes, as a picture: as many images as go, channel by channel where they are no colours.
#include "runtime/train/report/sample_grid.hpp"

#include <doctest/doctest.h>

#include "runtime/data/images/image.hpp"
#include "src/base/file.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/train/fake_engine.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

// Every pixel of image i's channel c is (10 i + c) of 255.
class Painter final : public test::FakeEngine, private GanEngine {
 public:
  Painter(const InputShape& shape, std::int64_t batch) : FakeEngine(shape, batch), shape_(shape) {}
  GanEngine* gan() override { return this; }
  Result<void> generate(std::span<float> images) override {
    const auto area = static_cast<std::size_t>(shape_.height * shape_.width);
    const auto channels = static_cast<std::size_t>(shape_.channels);
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i] = static_cast<float>(i / area / channels * 10 + i / area % channels) / 255;
    return {};
  }

 private:
  InputShape shape_;
};

Image grid_of(const InputShape& shape, std::int64_t batch) {
  const test::Folder folder;
  Painter painter(shape, batch);
  const auto path = write_sample_grid(painter, shape, {}, folder.path, 3);
  REQUIRE(path.has_value());
  CHECK(path->filename() == "samples-epoch-0003.png");
  const std::string file = *read_file(*path);
  return *decode_png({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "grid");
}

// Red, green and blue at (y, x).
std::vector<int> pixel(const Image& image, std::int64_t y, std::int64_t x) {
  const std::uint8_t* at = image.pixels.data() + (y * image.width + x) * 3;
  return {at[0], at[1], at[2]};
}

}  // namespace

TEST_CASE("images of one channel are grey, eight in a row, two white pixels between") {
  const Image grid = grid_of({.channels = 1, .height = 4, .width = 6}, 17);
  CHECK(grid.width == 8 * 6 + 7 * 2);
  CHECK(grid.height == 2 * 4 + 2);
  CHECK(pixel(grid, 0, 0) == std::vector{0, 0, 0});
  CHECK(pixel(grid, 0, 6) == std::vector{255, 255, 255});
  CHECK(pixel(grid, 6, 8) == std::vector{90, 90, 90});
}

TEST_CASE("images of three channels are in colour") {
  const Image grid = grid_of({.channels = 3, .height = 4, .width = 4}, 2);
  CHECK(grid.width == 10);
  CHECK(grid.height == 4);
  CHECK(pixel(grid, 3, 9) == std::vector{10, 11, 12});
}

TEST_CASE("of other channels each is a grey picture: an image a row, its channels across") {
  const Image two = grid_of({.channels = 2, .height = 4, .width = 4}, 3);
  CHECK(two.width == 10);
  CHECK(two.height == 3 * 4 + 2 * 2);
  CHECK(pixel(two, 12, 6) == std::vector{21, 21, 21});
  const Image many = grid_of({.channels = 11, .height = 4, .width = 4}, 20);
  CHECK(many.width == 8 * 4 + 7 * 2);
  CHECK(many.height == 8 * 4 + 7 * 2);
  CHECK(pixel(many, 45, 45) == std::vector{77, 77, 77});
}
