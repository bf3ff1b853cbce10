// From one container to another: the same images and labels; what is kept of a run that was ended; damage.
#include "runtime/data/repack.hpp"

#include <map>

#include <doctest/doctest.h>

#include "container_support.hpp"
#include "runtime/data/encoded/lmdb_writer.hpp"
#include "runtime/data/images/image_data.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

const ShardWriter* writer(std::string_view name) {
  for (const ShardWriter& each : shard_writers())
    if (each.name == name) return &each;
  return nullptr;
}

// Eleven training images in two classes, and one to test.
struct Flowers : Folder {
  Flowers() {
    for (int i = 0; i < 11; ++i)
      write(fmt::format("train/{}/{:02}.jpg", i % 3 == 0 ? "aster" : "tulip", i), photo(i));
    write("test/aster/a.png", grey_png(77));
    write("test/tulip/b.jpg", photo(99));
  }
  RepackJob job(const std::string& as, const std::filesystem::path& into,
                Damaged damaged = Damaged::refused) const {
    return {.source = make_image_source(
                {.directory = path, .damaged = damaged, .keep = ImageSpec::Keep::compressed}),
            .writer = writer(as),
            .into = into,
            .shard_bytes = 2500,
            .workers = 2};
  }
};

// Bytes and labels, whatever the order.
std::multimap<std::string, int> content(const Dataset& data) {
  std::multimap<std::string, int> out;
  std::vector<std::uint8_t> room;
  for (std::uint64_t i = 0; i < data.count; ++i) {
    const EncodedImage image = data.encoded->read(i, room).value();
    out.emplace(std::string(image.bytes.begin(), image.bytes.end()), data.labels[i]);
  }
  return out;
}

Result<DataParts> load_as(const std::string& as, const Folder& out) {
  if (as != "shards") return load_container(out, as, "classes: 2");
  return load_images({.directory = out.path / "new", .height = 8, .width = 8});
}

}  // namespace

TEST_CASE("every container that is written is read again with the same bytes and labels") {
  const Flowers flowers;
  const DataParts original = flowers.job("shards", "").source->load(0).value();
  for (const ShardWriter& each : shard_writers()) {
    CAPTURE(each.name);
    const Folder out;
    const std::string as(each.name);
    const auto into = as == "shards" ? out.path / "new" : out.path / as;
    const auto packed = repack(flowers.job(as, into));
    REQUIRE_MESSAGE(packed.has_value(), packed.error().text());
    CHECK(packed->train == 11);
    CHECK(packed->shards > 3);
    if (as != "shards") {  // the folder of the container
      std::filesystem::rename(into, out.path / "x");
      for (const auto& file : std::filesystem::directory_iterator(out.path / "x"))
        std::filesystem::rename(file.path(), out.path / file.path().filename());
      std::filesystem::remove(out.path / "x");
    }
    const auto parts = load_as(as, out);
    REQUIRE_MESSAGE(parts.has_value(), parts.error().text());
    CHECK(parts->classes == std::vector<std::string>{"aster", "tulip"});
    CHECK(content(parts->train) == content(original.train));
    CHECK(content(parts->test) == content(original.test));
    CHECK((parts->train.labels == original.train.labels) == !each.shuffled);
  }
}

TEST_CASE("a run that was ended is gone on with: its shards are kept, and those of another job are not") {
  const Flowers flowers;
  const Folder out;
  flowers.write("train/tulip/10.jpg", "no image");
  const auto refused = repack(flowers.job("shards", out.path / "new"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(contains(refused.error().text(), "tulip/10.jpg: neither JPEG nor PNG"));
  CHECK_FALSE(std::filesystem::exists(out.path / "new"));
  REQUIRE(std::filesystem::exists(out.path / "new.partial"));
  const auto dropped = repack(flowers.job("shards", out.path / "new", Damaged::dropped)).value();
  CHECK(dropped.dropped.size() == 1);
  CHECK(dropped.train == 10);
  CHECK(dropped.kept > 1);  // the damaged image is in the last one of the training part
  CHECK_FALSE(std::filesystem::exists(out.path / "new.partial"));
  CHECK(contains(repack(flowers.job("shards", out.path / "new")).error().text(), "already exists"));
}

TEST_CASE("a byte of own shards that changed is noticed where its image is read") {
  const Flowers flowers;
  const Folder out;
  REQUIRE(repack(flowers.job("shards", out.path / "new")).has_value());
  std::string shard = read_file(out.path / "new/train-00001.bin").value();
  shard[20] ^= 1;
  out.write("new/train-00001.bin", shard);
  const DataParts parts = load_images({.directory = out.path / "new"}).value();
  std::vector<std::uint8_t> room;
  std::string said;
  for (std::uint64_t i = 0; i < parts.train.count; ++i)
    if (const auto image = parts.train.encoded->read(i, room); !image) said += image.error().text();
  CHECK(contains(said, "new/train-00001.bin: offset 0: sample "));
  CHECK(contains(said, "is damaged: its checksum differs"));
  out.write("new/train.index", "x");
  CHECK(contains(load_images({.directory = out.path / "new"}).error().text(), "does not match its checksum"));
}

TEST_CASE("a database of many entries has levels of branches, and every key is found in order") {
  for (const int count : {1, 2, 300, 30000}) {
    const Folder out;
    LmdbWriter table;
    for (int i = 0; i < count; ++i)
      table.add(fmt::format("{:08}", i),
                ProtoWriter()
                    .bytes(4, std::string(static_cast<std::size_t>(i % 100 == 7 ? 5000 : i % 90), 'x'))
                    .varint(5, static_cast<std::uint64_t>(i % 10))
                    .varint(7, 1)
                    .text());
    std::filesystem::create_directory(out.path / "train_lmdb");
    out.write("train_lmdb/data.mdb", std::move(table).finish());
    const auto parts = load_container(out, "lmdb", "classes: 10, train: 0.9");
    REQUIRE_MESSAGE(parts.has_value(), parts.error().text());
    REQUIRE(parts->train.count == static_cast<std::uint64_t>(count));
    for (int i = 0; i < count; ++i) REQUIRE(parts->train.labels[static_cast<std::size_t>(i)] == i % 10);
  }
}
