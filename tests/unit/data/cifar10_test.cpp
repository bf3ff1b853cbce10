#include "runtime/data/cifar10.hpp"

#include <doctest/doctest.h>

#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

std::string records(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out.push_back(static_cast<char>(i % 10));
    for (int p = 0; p < 3072; ++p) out.push_back(static_cast<char>(i + p));
  }
  return out;
}

struct CifarFolder : Folder {
  CifarFolder() {
    for (int i = 1; i <= 5; ++i) write(fmt::format("data_batch_{}.bin", i), records(i));
    write("test_batch.bin", records(4));
  }
  std::string error() const {
    const auto loaded = load_cifar10(path);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().kind == ErrorKind::input);
    return loaded.error().text();
  }
};

}  // namespace

TEST_CASE("CIFAR-10's five batches are one training set") {
  const CifarFolder folder;
  const auto data = load_cifar10(folder.path);
  REQUIRE(data.has_value());
  CHECK(data->train.count == 15);
  CHECK(data->test.count == 4);
  CHECK(data->train.shape.channels == 3);
  CHECK(data->train.labels[14] == 4);
  CHECK(data->train.pixels(14)[10] == 14);
}

TEST_CASE("what is wrong with a batch is said with file and offset") {
  const CifarFolder folder;
  SUBCASE("a record cut off: the case of an interrupted download") {
    std::filesystem::resize_file(folder.path / "data_batch_1.bin", 30729999);
    CHECK(contains(folder.error(), "10000 records of 3073 bytes are 30730000"));
    CHECK(contains(folder.error(), "last record short by 1 byte"));
  }
  SUBCASE("a label out of range") {
    std::string batch = records(3);
    batch[2 * 3073] = 10;
    folder.write("data_batch_3.bin", batch);
    CHECK(contains(folder.error(), "data_batch_3.bin: label 10 of record 2 at offset 6146 is out of range"));
  }
  SUBCASE("a missing batch") {
    std::filesystem::remove(folder.path / "data_batch_4.bin");
    CHECK(contains(folder.error(), "data_batch_4.bin: cannot be read: No such file or directory"));
  }
  SUBCASE("a batch that is still gzip") {
    folder.write("data_batch_2.bin", gzip(records(2)));
    CHECK(contains(folder.error(), "data_batch_2.bin: file is still gzip"));
  }
  SUBCASE("an empty test set") {
    folder.write("test_batch.bin", "");
    CHECK(contains(folder.error(), "test_batch.bin: is empty"));
  }
}
