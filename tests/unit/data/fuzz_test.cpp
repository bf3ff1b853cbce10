// Damaged files of all formats, from a fixed seed: loading either works or is an Error of input, and ends. A
// crash, a hang or an allocation out of bounds fails the test (and is what the sanitizer builds look for).
#include <random>

#include <doctest/doctest.h>

#include "runtime/data/cifar10.hpp"
#include "runtime/data/idx.hpp"
#include "runtime/data/images/image.hpp"
#include "runtime/data/text/tokenizer.hpp"
#include "tests/unit/data/container_support.hpp"
#include "tests/unit/data/tokens_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

std::string damaged(std::string content, std::mt19937& random) {
  if (random() % 4 == 0) content.resize(random() % (content.size() + 1));
  if (random() % 8 == 0) content += std::string(random() % 20, 'z');
  const std::size_t flips = random() % 4;
  for (std::size_t i = 0; i < flips && !content.empty(); ++i) {
    // Half of them within the first bytes, where headers are.
    const std::size_t at =
        random() % (random() % 2 == 0 ? std::min<std::size_t>(content.size(), 24) : content.size());
    content[at] = static_cast<char>(random());
  }
  return content;
}

int refused = 0, accepted = 0;

template <class Loaded>
void judge(const Loaded& loaded) {
  loaded.has_value() ? ++accepted : ++refused;
  if (!loaded.has_value()) {
    CHECK(loaded.error().kind == ErrorKind::input);
    CHECK_FALSE(loaded.error().where.empty());
  }
}

}  // namespace

TEST_CASE("damaged IDX files are read or refused, never more") {
  std::mt19937 random(1);
  const Folder folder;
  const std::string images = idx_images(12, 3, 3), labels = idx_labels(12);
  refused = accepted = 0;
  for (int round = 0; round < 1500; ++round) {
    const bool packed = round % 2 == 0;
    const std::string suffix = packed ? ".gz" : "", other = packed ? "" : ".gz";
    const auto stored = [&](const std::string& content) { return packed ? gzip(content) : content; };
    for (const char* name : {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"}) {
      std::filesystem::remove(folder.path / (name + other));
      folder.write(name + suffix, damaged(stored(images), random));
    }
    for (const char* name : {"train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"}) {
      std::filesystem::remove(folder.path / (name + other));
      folder.write(name + suffix, round % 3 == 0 ? damaged(stored(labels), random) : stored(labels));
    }
    judge(load_idx(folder.path, 10));
  }
  CHECK(refused > 500);
  CHECK(accepted > 50);
}

TEST_CASE("damaged CIFAR-10 files are read or refused, never more") {
  std::mt19937 random(2);
  const Folder folder;
  const std::string record = std::string(1, '\3') + std::string(3072, 'p');
  for (int i = 2; i <= 5; ++i) folder.write(fmt::format("data_batch_{}.bin", i), record);
  folder.write("test_batch.bin", record);
  refused = accepted = 0;
  for (int round = 0; round < 400; ++round) {
    folder.write("data_batch_1.bin", damaged(record + record, random));
    judge(load_cifar10(folder.path));
  }
  CHECK(refused > 50);
  CHECK(accepted > 50);
}

TEST_CASE("damaged images are decoded or refused, never more") {
  const auto paint = [](int x, int y) {
    return std::vector<std::uint8_t>{static_cast<std::uint8_t>(x * 9), static_cast<std::uint8_t>(y * 11), 77};
  };
  const std::vector<std::string> sound{
      jpeg_of(24, 17, paint, {JCS_RGB, 3, exif_of(6)}),
      png_of<std::uint8_t>(9, 7, PNG_FORMAT_RGB, std::vector<std::uint8_t>(9 * 7 * 3, 99)),
      png_of<std::uint16_t>(5, 4, PNG_FORMAT_LINEAR_Y, std::vector<std::uint16_t>(20, 999))};
  std::mt19937 random(7);
  refused = accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string file = damaged(sound[random() % sound.size()], random);
    // A header that promises more pixels than the file could hold is believed up to the limit: keep it small
    // here.
    judge(decode_image({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "damaged"));
  }
  CHECK(refused > 300);
  CHECK(accepted > 300);
}

TEST_CASE("damaged token files are read or refused, never more") {
  std::mt19937 random(5);
  const Folder folder;
  const std::string sound = counting_tokens(0, 40, 300);
  folder.write("train-1.tokens", sound);
  refused = accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    folder.write("train-0.tokens", damaged(sound, random));
    const auto source = token_source(folder, "context: 7, train: 0.5");
    REQUIRE(source);
    judge((*source)->check());
    judge((*source)->load(1));
  }
  CHECK(refused > 500);
  CHECK(accepted > 50);
}

TEST_CASE("a damaged tokenizer is read or refused, never more") {
  std::mt19937 random(6);
  const std::string sound = Tokenizer::of_bytes().to_text();
  refused = accepted = 0;
  for (int round = 0; round < 300; ++round) {
    const auto tokenizer = Tokenizer::parse(damaged(sound, random), "tokenizer.json");
    judge(tokenizer);
    if (tokenizer) CHECK_FALSE(tokenizer->encode("some text").empty());
  }
  CHECK(refused > 50);
  CHECK(accepted > 30);
}

TEST_CASE("damaged containers are read or refused, never more") {
  std::mt19937 random(11);
  const Folder folder;
  std::filesystem::create_directory(folder.path / "train_lmdb");
  const std::string tar = tar_member("a.jpg", grey_png(1)) +
                          tar_member(std::string(120, 'b') + ".png", grey_png(2)) + tar_member("a.cls", "1") +
                          tar_end();
  const std::string records = frame_record(example(grey_png(1), 1)) + frame_record(example(grey_png(2), 2));
  struct Kind {
    const char *format, *file, *more;
    std::string content;
  };
  for (const Kind& kind :
       {Kind{"webdataset", "train.tar", "train: 0.5", tar}, Kind{"tfrecord", "train", "train: 0.5", records},
        Kind{"lmdb", "train_lmdb/data.mdb", "train: 0.5, classes: 10", recorded_lmdb()}}) {
    CAPTURE(kind.format);
    refused = accepted = 0;
    for (int round = 0; round < 400; ++round) {
      std::string broken = damaged(kind.content, random);
      // A database is mostly empty: most flips go where its nodes are.
      if (!broken.empty())
        broken[random() % std::min<std::size_t>(broken.size(), 12288)] ^= random() % 3 == 0 ? 1 : 0;
      folder.write(kind.file, broken);
      const auto parts = load_container(folder, kind.format, kind.more);
      parts.has_value() ? ++accepted : ++refused;
      if (!parts) {
        CHECK(parts.error().kind == ErrorKind::input);
        continue;
      }
      std::vector<std::uint8_t> room;
      for (std::uint64_t i = 0; i < parts->train.count; ++i)
        if (const auto image = parts->train.encoded->read(i, room); image && !image->raw)
          static_cast<void>(decode_image(image->bytes, "damaged"));
    }
    CHECK(refused > 50);
    CHECK(refused + accepted == 400);
    std::filesystem::remove(folder.path / kind.file);
  }
}
