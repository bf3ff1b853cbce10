// Images of 16 bits per channel: they keep every bit and their channels, and what would change them is
// refused by name.
#include <doctest/doctest.h>

#include "runtime/data/batch_filler.hpp"
#include "tests/unit/data/image_support.hpp"
#include "tests/unit/data/number_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

using Numbers = std::vector<std::uint16_t>;

// Two classes of two pixels each.
struct DeepFolder {
  Folder folder;
  explicit DeepFolder(const std::string& of_a, const std::string& of_b) {
    std::filesystem::create_directories(folder.path / "a");
    std::filesystem::create_directories(folder.path / "b");
    folder.write("a/x.png", of_a);
    folder.write("b/y.png", of_b);
  }
  auto source(const std::string& keys) const {
    return number_source(folder, "format: images, dir: $, train: 0.5, bit-depth: 16" + keys);
  }
  Result<DataParts> load(const std::string& keys = "") const { return load_data(*TRY(source(keys)), 1, 0.5); }
  std::string refusal(const std::string& keys = "") const {
    const auto data = load(keys);
    return data ? "none" : data.error().text();
  }
};

std::string grey(const Numbers& numbers) {
  return png_of<std::uint16_t>(static_cast<int>(numbers.size()), 1, PNG_FORMAT_LINEAR_Y, numbers);
}

std::string colour(const Numbers& numbers) {
  return png_of<std::uint16_t>(static_cast<int>(numbers.size() / 3), 1, PNG_FORMAT_LINEAR_RGB, numbers);
}

std::vector<float> rows_of(const DataParts& data, std::size_t count) {
  const BatchFiller filler(data.train, {}, {}, {.memory = 1 << 20, .workers = 1});
  std::vector<float> rows(count * data.train.pixels_per_sample());
  std::vector<std::int32_t> labels(count);
  filler.fill(
      count, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
  CHECK(filler.state().has_value());
  return rows;
}

}  // namespace

TEST_CASE("a grey image of 16 bits is one channel of the numbers that are in the file") {
  const DeepFolder images(grey({0, 1, 256, 32769}), grey({65535, 65534, 255, 257}));
  const auto data = images.load();
  REQUIRE_MESSAGE(data.has_value(), data.error().text());
  CHECK(data->train.shape.channels == 1);
  CHECK(data->train.shape.width == 4);
  CHECK(data->train.shape.classes == 2);
  CHECK(data->train.labels == std::vector<std::uint16_t>{0, 1});
  CHECK(rows_of(*data, 2) == std::vector<float>{0, 1, 256, 32769, 65535, 65534, 255, 257});
}

TEST_CASE("an image of 16 bits in colour becomes three planes") {
  const DeepFolder images(colour({1, 2, 3, 40000, 50000, 60000}), colour({7, 8, 9, 10, 11, 12}));
  const auto data = images.load(", channels: 3");
  REQUIRE_MESSAGE(data.has_value(), data.error().text());
  CHECK(rows_of(*data, 2) == std::vector<float>{1, 40000, 2, 50000, 3, 60000, 7, 10, 8, 11, 9, 12});
  CHECK(contains(images.refusal(", channels: 1"), "has 3 channels, and data.channels is 1"));
}

TEST_CASE("images that are not of 16 bits or not alike are refused by name") {
  const std::string sound = grey({1, 2});
  const auto refusal = [&](const std::string& second) { return DeepFolder(sound, second).refusal(); };
  const std::string of_8 =
      refusal(png_of<std::uint8_t>(2, 1, PNG_FORMAT_GRAY, std::vector<std::uint8_t>{1, 2}));
  CHECK(contains(of_8, "b/y.png: PNG: has 8 bits per channel, and data.bit-depth is 16"));
  CHECK(contains(refusal(png_of<std::uint16_t>(1, 1, PNG_FORMAT_LINEAR_RGB_ALPHA, Numbers{1, 2, 3, 4})),
                 "b/y.png: PNG: has transparency"));
  CHECK(contains(refusal(grey({1, 2, 3})), "b/y.png: has 3 x 1 pixels in 1 channel, and "));
  CHECK(contains(refusal("\xff\xd8 a JPEG"), "b/y.png: is not a PNG, and data.bit-depth is 16"));
  CHECK(contains(refusal(sound.substr(0, 20)), "b/y.png: PNG: the file is cut short"));
}

TEST_CASE("damage within the pixels is found when they are read, and left out where that is asked for") {
  const std::string sound = grey({1, 2});
  const DeepFolder cut(sound, sound.substr(0, sound.size() - 14));
  const auto data = cut.load();
  REQUIRE(data.has_value());
  std::vector<float> row(2);
  const auto read = data->train.numbers->read(1, {}, row);
  REQUIRE_FALSE(read.has_value());
  CHECK(contains(read.error().text(), "b/y.png: PNG: "));
  const DeepFolder headless(sound, sound.substr(0, 20));
  const auto left = headless.load(", damaged: drop");
  REQUIRE(left.has_value());
  CHECK(left->train.count == 1);
  CHECK(contains(left->notes.at(1), "damaged image left out: "));
}

TEST_CASE("what changes pixels of 8 bits is refused beside bit-depth: 16") {
  const DeepFolder images(grey({1, 2}), grey({1, 2}));
  const auto refusal = [&](const std::string& keys) { return images.source(keys).error().text(); };
  CHECK(contains(refusal(", augment: [flip]"), "train.data.augment changes pixels of 8 bits"));
  CHECK(contains(refusal(", size: 4"), "train.data.size scales pixels of 8 bits"));
  CHECK(contains(refusal(", centre-crop: 0.9"), "train.data.centre-crop scales pixels of 8 bits"));
  CHECK(contains(number_source(images.folder, "format: images, dir: $, bit-depth: 12").error().text(),
                 "train.data.bit-depth must be 8 or 16"));
  images.folder.write("list.txt", "a/x.png 0\nb/y.png 1\n");
  const auto listed =
      number_source(images.folder, "format: list, list: $/list.txt, classes: 2, train: 0.5, bit-depth: 16");
  REQUIRE_MESSAGE(listed.has_value(), listed.error().text());
  CHECK((*listed)->load(1).value().train.count == 2);
}
