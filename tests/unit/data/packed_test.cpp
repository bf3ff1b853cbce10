// From folders of images to samples, straight and by way of packed shards: the same bytes.
#include "runtime/data/images/packed.hpp"

#include <doctest/doctest.h>

#include "image_support.hpp"
#include "runtime/data/images/image_data.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// Seven training and two test images in two classes, of odd sizes and both formats.
struct Photos : Folder {
  Photos() {
    for (int i = 0; i < 7; ++i) put(fmt::format("train/{}/{}.jpg", i % 2 == 0 ? "aster" : "tulip", i), i);
    put("test/aster/8.jpg", 8);
    std::filesystem::create_directories(path / "test/tulip");
    write("test/tulip/9.png", png_of<std::uint8_t>(3, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4, 5, 6}));
  }
  void put(const std::string& name, int i) const {
    std::filesystem::create_directories((path / name).parent_path());
    write(name, jpeg_of(20 + i, 30 - i, [i](int x, int y) {
            return std::vector<std::uint8_t>{static_cast<std::uint8_t>(x * 7 + i),
                                             static_cast<std::uint8_t>(y * 5),
                                             static_cast<std::uint8_t>(30 * i)};
          }));
  }
  DataSpec spec(Damaged damaged = Damaged::refused) const {
    return {.format = DataFormat::images, .directory = path, .height = 8, .width = 6, .damaged = damaged};
  }
};

bool same(const Dataset& left, const Dataset& right) {
  if (left.count != right.count || left.labels != right.labels) return false;
  for (std::uint64_t i = 0; i < left.count; ++i)
    if (!std::equal(left.pixels(i).begin(), left.pixels(i).end(), right.pixels(i).begin())) return false;
  return left.fingerprint() == right.fingerprint();
}

}  // namespace

TEST_CASE("images become equal samples, in planes, whatever the number of threads") {
  const Photos photos;
  const DataParts parts = load_images(photos.spec()).value();
  CHECK(parts.train.count == 7);
  CHECK(parts.test.count == 2);
  CHECK(parts.train.shape.classes == 2);
  CHECK(parts.train.labels == std::vector<std::uint16_t>{0, 0, 0, 0, 1, 1, 1});
  CHECK(parts.train.pixels(0).size() == 3 * 8 * 6);
  const ImageSet set = find_images(photos.spec()).value();
  CHECK(same(parts.train, decode_all(set.train, parts.train.shape, Damaged::refused, 1).value()));
}

TEST_CASE("packed they are the same samples, over several shards") {
  const Photos photos;
  const DataParts direct = load_images(photos.spec()).value();
  const Folder out;
  const auto packed =
      pack_images({.data = photos.spec(), .into = out.path / "packed", .shard_bytes = 3 * 8 * 6 * 3}).value();
  CHECK(packed.train == 7);
  CHECK(packed.test == 2);
  DataSpec spec{.format = DataFormat::images, .directory = out.path / "packed"};
  const DataParts mapped = load_images(spec).value();
  CHECK(mapped.train.shards.size() == 3);
  CHECK(same(mapped.train, direct.train));
  CHECK(same(mapped.test, direct.test));
  CHECK(probe_images(spec)->height == 8);
  CHECK(pack_images({.data = photos.spec(), .into = out.path / "packed"})
            .error()
            .what.find("is there already") != std::string::npos);
}

TEST_CASE("damaged images are all named, or left out by everybody") {
  const Photos photos;
  photos.write("train/aster/0.jpg", "");
  photos.write("train/tulip/5.jpg", "no image");
  const std::string refusal = load_images(photos.spec()).error().text();
  CHECK(refusal.find("2 of 7 images cannot be decoded") != std::string::npos);
  CHECK(refusal.find("aster/0.jpg: the file is empty") != std::string::npos);
  CHECK(refusal.find("tulip/5.jpg: neither JPEG nor PNG") != std::string::npos);
  const DataParts parts = load_images(photos.spec(Damaged::dropped)).value();
  CHECK(parts.train.labels == std::vector<std::uint16_t>{0, 0, 0, 1, 1});
  const Folder out;
  CHECK_FALSE(pack_images({.data = photos.spec(), .into = out.path / "packed"}).has_value());
  CHECK(std::filesystem::is_empty(out.path));
  CHECK(pack_images({.data = photos.spec(Damaged::dropped), .into = out.path / "packed"})->dropped == 2);
  CHECK(same(load_images({.format = DataFormat::images, .directory = out.path / "packed"})->train,
             parts.train));
}

TEST_CASE("a packed folder that was changed is refused") {
  const Photos photos;
  const Folder out;
  REQUIRE(pack_images({.data = photos.spec(), .into = out.path / "p"}).has_value());
  const DataSpec spec{.format = DataFormat::images, .directory = out.path / "p"};
  const std::string shard = read_file(out.path / "p/train-00000.bin").value();
  out.write("p/train-00000.bin", shard.substr(1));
  CHECK(load_images(spec).error().what.find("has 1007 bytes and not 1008") != std::string::npos);
  out.write("p/train-00000.bin", shard);
  const std::string labels = read_file(out.path / "p/train.labels").value();
  out.write("p/train.labels", std::string(labels.size(), '\1'));
  CHECK(load_images(spec).error().what.find("checksum") != std::string::npos);
  out.write("p/train.labels", labels);
  out.write("p/images.json", "{}");
  CHECK(load_images(spec).error().text().find("field 'schema' is missing") != std::string::npos);
}
