// Images of one channel: grey files as they are, those in colour by their luminance, decoded once or ahead.
#include <cmath>

#include <doctest/doctest.h>

#include "runtime/data/batch_filler.hpp"
#include "runtime/data/images/image.hpp"
#include "tests/unit/data/number_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

TEST_CASE("with channels: 1 a grey image keeps its bytes, and one in colour has its luminance") {
  const std::vector<std::uint8_t> grey{10, 20, 30, 40}, colour{255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9};
  const Folder folder;
  std::filesystem::create_directories(folder.path / "a");
  std::filesystem::create_directories(folder.path / "b");
  folder.write("a/x.png", encode_png(grey, 2, 2, 1).value());
  folder.write("b/y.png", encode_png(colour, 2, 2, 3).value());
  for (const char* memory : {"1GiB", "1B"}) {  // decoded once, and compressed
    const auto source = number_source(
        folder, fmt::format("format: images, dir: $, size: 2, channels: 1, train: 0.5, memory: {}", memory));
    REQUIRE_MESSAGE(source.has_value(), source.error().text());
    CHECK((*source)->channels() == 1);
    const auto data = load_data(**source, 1, 0.5);
    REQUIRE_MESSAGE(data.has_value(), data.error().text());
    REQUIRE(data->train.shape.channels == 1);
    const BatchFiller filler(data->train, {}, {}, {.memory = 1 << 20, .workers = 1});
    std::vector<float> rows(8);
    std::vector<std::int32_t> labels(2);
    filler.fill(
        2, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
    const std::vector<int> wanted{10, 20, 30, 40, 76, 150, 29, 9};
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::lround(rows[i] * 255) == wanted[i]);
  }
  CHECK_FALSE(number_source(folder, "format: images, dir: $, channels: 2").has_value());
}
