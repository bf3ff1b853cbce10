#include "runtime/data/idx.hpp"

#include <doctest/doctest.h>

#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

const std::string train_images = "train-images-idx3-ubyte", train_labels = "train-labels-idx1-ubyte";
const std::string test_images = "t10k-images-idx3-ubyte", test_labels = "t10k-labels-idx1-ubyte";

// A sound data set of 30 and 20 images, in which a test then replaces a file.
struct IdxFolder : Folder {
  IdxFolder() {
    write(train_images, idx_images(30, 4, 5));
    write(train_labels, idx_labels(30));
    write(test_images, idx_images(20, 4, 5));
    write(test_labels, idx_labels(20));
  }
  std::string error() const {
    const auto loaded = load_idx(path, 10);
    REQUIRE_FALSE(loaded.has_value());
    CHECK(loaded.error().kind == ErrorKind::input);
    CHECK(loaded.error().where.starts_with(path.string()));
    return loaded.error().text();
  }
  void replace_by_gz(const std::string& name, const std::string& content) const {
    std::filesystem::remove(path / name);
    write(name + ".gz", content);
  }
};

}  // namespace

TEST_CASE("an IDX data set is read as it is, plain or gzip") {
  IdxFolder folder;
  SUBCASE("plain") {}
  SUBCASE("gzip") {
    folder.replace_by_gz(train_images, gzip(idx_images(30, 4, 5)));
  }
  SUBCASE("gzip in two members") {
    const std::string whole = idx_images(30, 4, 5);
    folder.replace_by_gz(train_images, gzip(whole.substr(0, 100)) + gzip(whole.substr(100)));
  }
  SUBCASE("with a dot in the name") {
    std::filesystem::rename(folder.path / train_labels, folder.path / "train-labels.idx1-ubyte");
  }
  const auto data = load_idx(folder.path, 10);
  REQUIRE(data.has_value());
  CHECK(data->train.count == 30);
  CHECK(data->test.count == 20);
  CHECK(data->train.shape.height == 4);
  CHECK(data->train.shape.width == 5);
  CHECK(data->train.labels[17] == 7);
  CHECK(data->train.pixels(2)[3] == (43 * 7) % 256);
  CHECK(probe_idx(folder.path, 10)->width == 5);
}

TEST_CASE("a file that is cut off or too long says by how much") {
  const IdxFolder folder;
  const std::string whole = idx_images(30, 4, 5);
  SUBCASE("short by one byte") {
    folder.write(train_images, whole.substr(0, whole.size() - 1));
    CHECK(contains(folder.error(),
                   "30 x 4 x 5, 616 bytes in all: the file is short by 1 byte (it ends at offset 615)"));
  }
  SUBCASE("longer by three bytes") {
    folder.write(train_images, whole + "abc");
    CHECK(contains(folder.error(), "longer by 3 bytes (trailing bytes from offset 616 on)"));
  }
  SUBCASE("the same within gzip, by offsets of the uncompressed data") {
    folder.replace_by_gz(train_images, gzip(whole.substr(0, 400)));
    CHECK(contains(folder.error(), "the uncompressed data is short by 216 bytes (it ends at offset 400)"));
  }
  SUBCASE("too long within gzip") {
    folder.replace_by_gz(train_images, gzip(whole + std::string(5, 'x')));
    CHECK(contains(folder.error(), "the uncompressed data is longer by 5 bytes"));
  }
  SUBCASE("within the header") {
    folder.write(train_images, whole.substr(0, 9));
    CHECK(contains(folder.error(), "ends at offset 9, within the IDX header of 16 bytes"));
  }
  SUBCASE("empty") {
    folder.write(train_images, "");
    CHECK(contains(folder.error(), "is empty (0 bytes)"));
  }
}

TEST_CASE("gzip under a plain name, and the reverse, are refused by content") {
  const IdxFolder folder;
  SUBCASE("still gzip") {
    folder.write(train_images, gzip(idx_images(30, 4, 5)));
    CHECK(contains(folder.error(), "file is still gzip"));
  }
  SUBCASE("only called .gz") {
    folder.replace_by_gz(train_labels, idx_labels(30));
    CHECK(contains(folder.error(), "is not gzip: it starts with 00 00 at offset 0"));
  }
}

TEST_CASE("a damaged gzip says how: none of its data is used") {
  const IdxFolder folder;
  std::string packed = gzip(idx_images(30, 4, 5));
  SUBCASE("checksum") {
    packed[packed.size() - 8] = static_cast<char>(packed[packed.size() - 8] ^ 1);
    folder.replace_by_gz(train_images, packed);
    CHECK(contains(folder.error(), "gzip CRC mismatch after 616 bytes"));
  }
  SUBCASE("length in the trailer") {
    packed[packed.size() - 4] = static_cast<char>(packed[packed.size() - 4] ^ 1);
    folder.replace_by_gz(train_images, packed);
    CHECK(contains(folder.error(), "gzip length mismatch: 616 bytes"));
  }
  SUBCASE("cut before the trailer") {
    folder.replace_by_gz(train_images, packed.substr(0, packed.size() - 8));
    CHECK(contains(folder.error(), "gzip stream ended early: 616 bytes of data"));
  }
  SUBCASE("cut in the middle") {
    folder.replace_by_gz(train_images, packed.substr(0, packed.size() / 2));
    CHECK(contains(folder.error(), "gzip stream ended early"));
  }
  SUBCASE("something else behind it") {
    folder.replace_by_gz(train_images, packed + "hello");
    CHECK(contains(folder.error(), "5 bytes that are not gzip follow the compressed data"));
  }
}

TEST_CASE("headers and labels are checked against what is there") {
  const IdxFolder folder;
  SUBCASE("labels where images belong") {
    folder.write(train_images, idx_labels(30));
    CHECK(contains(folder.error(), "magic number 2049 (labels) at offset 0; expected 2051 (images)"));
  }
  SUBCASE("any other magic") {
    folder.write(train_images, "PNG?" + std::string(100, 'x'));
    CHECK(contains(folder.error(), "magic number 1347307327 at offset 0"));
  }
  SUBCASE("a label out of range") {
    std::string labels = idx_labels(30);
    labels[8 + 12] = 11;
    folder.write(train_labels, labels);
    CHECK(contains(folder.error(), "label 11 at offset 20 is out of range [0, 9]"));
  }
  SUBCASE("counts that differ") {
    folder.write(train_labels, idx_labels(29));
    CHECK(contains(folder.error(), "has 29 labels, but "));
  }
  SUBCASE("test images of another size") {
    folder.write(test_images, idx_images(20, 5, 5));
    CHECK(contains(folder.error(), "has images of 5 x 5, but "));
  }
  SUBCASE("dimensions whose product does not fit 32 bits") {
    folder.write(train_images,
                 big_endian(2051) + big_endian(0xffffffff) + big_endian(16384) + big_endian(16384));
    folder.write(train_labels, big_endian(2049) + big_endian(0xffffffff));
    CHECK(contains(folder.error(), "1152921504338411536 bytes in all: the file is short by"));
  }
  SUBCASE("the same in gzip: refused before memory is asked for") {
    folder.replace_by_gz(train_images,
                         gzip(big_endian(2051) + big_endian(30) + big_endian(16384) + big_endian(16384)));
    CHECK(contains(folder.error(), "compressed bytes cannot hold that"));
  }
  SUBCASE("an impossible side") {
    folder.write(train_images, big_endian(2051) + big_endian(30) + big_endian(0) + big_endian(28));
    CHECK(contains(folder.error(), "images of 0 x 28 (offset 8)"));
  }
  SUBCASE("a file that is missing") {
    std::filesystem::remove(folder.path / test_labels);
    CHECK(contains(folder.error(), "t10k-labels-idx1-ubyte: no such file"));
  }
}

TEST_CASE("Fashion-MNIST as Debian packs it is read whole") {
  const auto data = load_idx("/usr/share/datasets/fashion-mnist", 10);
  REQUIRE_MESSAGE(data.has_value(), "the package dataset-fashion-mnist is needed (share/setup.sh --test)");
  CHECK(data->train.count == 60000);
  CHECK(data->test.count == 10000);
  CHECK(data->train.labels[0] == 9);  // an ankle boot
}
