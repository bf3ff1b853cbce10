// Tar, TFRecord and LMDB: what is found, how an image is taken out, and how damage is named.
#include "runtime/data/encoded/container.hpp"

#include <doctest/doctest.h>

#include "container_support.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/encoded/part_files.hpp"
#include "runtime/data/gzip.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

Result<DataParts> load(const Folder& folder, const std::string& format, const std::string& more = "") {
  return load_container(folder, format, more);
}

std::vector<float> pixels_of(const Dataset& data, std::uint64_t sample) {
  std::vector<float> out(data.pixels_per_sample());
  std::vector<std::int32_t> label(1);
  const BatchFiller filler(data, {.mean = {}, .std_dev = {1 / 255.0, 1 / 255.0, 1 / 255.0}}, {});
  filler.fill(
      1, [&](std::uint64_t) { return sample; }, std::nullopt, out, label);
  const auto state = filler.state();
  REQUIRE_MESSAGE(state.has_value(), state.error().text());
  CHECK(label[0] == static_cast<std::int32_t>(data.labels[sample]));
  return out;
}

}  // namespace

TEST_CASE("the parts of a folder are told by the words of names") {
  const Folder folder;
  for (const char* name : {"train-00001-of-2.tar", "train-00000-of-2.tar", "ilsvrc12_val_0.tar", "notes.txt"})
    folder.write(name, "");
  std::filesystem::create_directory(folder.path / "my_test_lmdb");
  folder.write("my_test_lmdb/a.tar", "");
  const auto is_tar = [](const std::filesystem::path& file) { return file.extension() == ".tar"; };
  const PartFiles found = find_part_files(folder.path, is_tar).value();
  CHECK(found.train ==
        std::vector{folder.path / "train-00000-of-2.tar", folder.path / "train-00001-of-2.tar"});
  CHECK(found.test == std::vector{folder.path / "ilsvrc12_val_0.tar", folder.path / "my_test_lmdb/a.tar"});
}

TEST_CASE("a set of numbered files is whole, or the file that is missing is named") {
  const Folder folder;
  const auto is_tar = [](const std::filesystem::path& file) { return file.extension() == ".tar"; };
  for (const char* name :
       {"train-00000-of-00003.tar", "train-00002-of-00003.tar", "val-1-of-2.tar", "val-2-of-2.tar"})
    folder.write(name, "");
  const std::string text = find_part_files(folder.path, is_tar).error().text();
  CHECK(contains(text, "train-*-of-00003.tar: file 1 of the set is missing"));
  folder.write("train-00001-of-00003.tar", "");
  CHECK(find_part_files(folder.path, is_tar)->train.size() == 3);
  std::filesystem::remove(folder.path / "val-1-of-2.tar");
  CHECK(contains(find_part_files(folder.path, is_tar).error().text(), "val-*-of-2.tar: file 1 of"));
}

TEST_CASE("a sample of a tar file has one image and one class") {
  const Folder folder;
  folder.write("val-0.tar", tar_member("x.jpg", photo(3)) + tar_member("x.cls", "1") + tar_end());
  const std::string twice = tar_member("x.png", grey_png(9)) + tar_member("x.cls", "0");
  folder.write("train-0.tar", twice + twice + tar_end());
  CHECK(contains(load(folder, "webdataset").error().text(), "sample 'x' has a second image"));
  const DataParts parts = load(folder, "webdataset", "damaged: drop").value();
  CHECK(parts.train.count == 1);
  CHECK(contains(parts.notes.at(0), "has a second"));
}

TEST_CASE("a tar file's samples are found, under long names too, and decoded") {
  const Folder folder;
  const std::string deep(130, 'd');
  folder.write("train-0.tar", tar_member("a/one.jpg", photo(1)) + tar_member("a/one.cls", "2\n") +
                                  tar_member("a/one.txt", "a caption") + tar_member("two.cls", "0") +
                                  tar_member("two.png", grey_png(9)) + tar_member(deep + ".jpeg", photo(2)) +
                                  tar_member(deep + ".cls", "1") + tar_end());
  folder.write("val-0.tar", tar_member("x.jpg", photo(3)) + tar_member("x.cls", "1") + tar_end());
  const DataParts parts = load(folder, "webdataset").value();
  CHECK(parts.train.labels == std::vector<std::uint16_t>{2, 0, 1});
  CHECK(parts.test.count == 1);
  CHECK(pixels_of(parts.train, 1) == std::vector<float>(3 * 8 * 8, 9));
  CHECK(pixels_of(parts.train, 0) == decoded(photo(1)));
  CHECK(pixels_of(parts.train, 2) == decoded(photo(2)));
}

TEST_CASE(
    "a tar file that is cut short or altered is refused with file and offset, or kept as far as it is "
    "sound") {
  const Folder folder;
  const std::string sound = tar_member("one.jpg", photo(1)) + tar_member("one.cls", "2") +
                            tar_member("two.jpg", photo(2)) + tar_member("two.cls", "1") + tar_end();
  folder.write("val.tar", sound);
  const std::uint64_t second = tar_member("one.jpg", photo(1)).size() + tar_member("one.cls", "2").size();
  folder.write("train.tar", sound.substr(0, second + 700));
  const std::string file = (folder.path / "train.tar").string();
  CHECK(contains(load(folder, "webdataset").error().text(),
                 fmt::format("{}: offset {}: the tar file ends within 'two.jpg'", file, second)));
  CHECK(load(folder, "webdataset", "damaged: drop")->train.count == 1);
  folder.write("train.tar", sound.substr(0, sound.size() - 1024));
  CHECK(contains(load(folder, "webdataset").error().text(), "without its last blocks"));
  std::string flipped = sound;
  flipped[second + 3] ^= 1;
  folder.write("train.tar", flipped);
  CHECK(contains(load(folder, "webdataset").error().text(), "no tar header: its checksum differs"));
  folder.write("train.tar", tar_member("one.jpg", photo(1)) + tar_member("two.cls", "1") + tar_end());
  CHECK(contains(load(folder, "webdataset").error().text(), "sample 'one' has no .cls"));
  folder.write("train.tar", tar_member("one.jpg", photo(1)) + tar_member("one.cls", "7") + tar_end());
  CHECK(contains(load(folder, "webdataset").error().text(), "label 7 is out of range [0, 2]"));
}

TEST_CASE("a TFRecord file's examples are found, whatever the order of features and the form of numbers") {
  const Folder folder;
  folder.write("train-00000-of-00001", frame_record(example(photo(1), 1)) +
                                           frame_record(example(photo(2), 3)) +
                                           frame_record(unpacked_example(photo(3), 2)));
  folder.write("validation-00000-of-00001", frame_record(example(grey_png(5), 1)));
  const DataParts parts = load(folder, "tfrecord", "first-label: 1").value();
  CHECK(parts.train.labels == std::vector<std::uint16_t>{0, 2, 1});
  CHECK(pixels_of(parts.train, 2) == decoded(photo(3)));
  CHECK(pixels_of(parts.test, 0) == std::vector<float>(3 * 8 * 8, 5));
  CHECK(contains(load(folder, "tfrecord").error().text(), "label 3 is out of range [0, 2]"));
  CHECK(contains(load(folder, "tfrecord", "label-key: other").error().text(), "has no feature 'other'"));
}

TEST_CASE("a TFRecord file's damage is named: cut short, a wrong length, wrong data") {
  const Folder folder;
  const std::string first = frame_record(example(photo(1), 1)), second = frame_record(example(photo(2), 2));
  folder.write("val", first);
  folder.write("train", (first + second).substr(0, first.size() + 40));
  const std::string at = fmt::format("{}: offset {}: ", (folder.path / "train").string(), first.size());
  CHECK(contains(load(folder, "tfrecord").error().text(), at + "the file ends within a record"));
  CHECK(load(folder, "tfrecord", "damaged: drop")->train.count == 1);
  folder.write("train", "");
  CHECK(contains(load(folder, "tfrecord").error().text(), "the file is empty"));
  std::string flipped = first + second;
  flipped[first.size()] ^= 1;
  folder.write("train", flipped);
  CHECK(contains(load(folder, "tfrecord").error().text(), at + "the CRC of a record's length is wrong"));
  flipped = first + second;
  flipped[flipped.size() - 90] ^= 1;  // of the image
  folder.write("train", flipped);
  const DataParts parts = load(folder, "tfrecord").value();
  std::vector<std::uint8_t> room;
  CHECK(parts.train.encoded->read(0, room).has_value());
  CHECK(contains(parts.train.encoded->read(1, room).error().text(), "the CRC of the record's data is wrong"));
}

TEST_CASE("a database that Caffe's library wrote is read: small and large values, in the order of keys") {
  const Folder folder;
  std::filesystem::create_directory(folder.path / "train_lmdb");
  folder.write("train_lmdb/data.mdb", recorded_lmdb());
  folder.write("train_lmdb/lock.mdb", "");
  const DataParts parts = load(folder, "lmdb", "classes: 10, train: 0.9").value();
  REQUIRE(parts.train.count == 40);
  std::vector<std::uint8_t> room;
  for (std::uint64_t i = 0; i < 40; ++i) {
    CHECK(parts.train.labels[i] == i % 10);
    const EncodedImage image = parts.train.encoded->read(i, room).value();
    const auto side = static_cast<std::int64_t>(i == 17 ? 60 : 2 + i % 5);
    REQUIRE(image.raw.has_value());
    CHECK(image.raw->height == side);
    for (std::size_t k = 0; k < image.bytes.size(); ++k) REQUIRE(image.bytes[k] == ((i * 31 + k * 7) & 255));
  }
}

TEST_CASE("a database that is cut short or has other sizes than it says is refused") {
  const Folder folder;
  std::filesystem::create_directory(folder.path / "train_lmdb");
  const std::string sound = recorded_lmdb();
  const auto refusal = [&](const std::string& content) {
    folder.write("train_lmdb/data.mdb", content);
    return load(folder, "lmdb", "classes: 10, train: 0.9").error().text();
  };
  CHECK(contains(refusal(sound.substr(0, sound.size() - 4096)), "it was cut short"));
  CHECK(contains(refusal(std::string(8192, 'x')), "no LMDB header"));
  std::string other = sound;
  const std::size_t datum = other.find(std::string("\x08\x03\x10\x02\x18\x02", 6));
  REQUIRE(datum != std::string::npos);
  other[datum + 3] = 5;
  CHECK(contains(refusal(other),
                 fmt::format("offset {}: the Datum has 12 bytes, and its size is 3 x 5 x 2", datum)));
}

TEST_CASE("damaged images are refused with their place where they are decoded, or dropped and told") {
  const Folder folder;
  folder.write("train.tar", tar_member("a.jpg", photo(1)) + tar_member("a.cls", "1") +
                                tar_member("b.jpg", photo(2).substr(0, photo(2).size() - 40)) +
                                tar_member("b.cls", "2") + tar_end());
  folder.write("val.tar", tar_member("a.jpg", photo(1)) + tar_member("a.cls", "1") + tar_end());
  for (const Damaged damaged : {Damaged::refused, Damaged::dropped}) {
    const DataParts parts =
        load(folder, "webdataset", damaged == Damaged::dropped ? "damaged: drop" : "").value();
    const BatchFiller filler(parts.train, {}, {});
    std::vector<float> rows(2 * parts.train.pixels_per_sample());
    std::vector<std::int32_t> labels(2);
    const std::uint64_t counted = filler.fill(
        2, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
    CHECK(counted == 1);
    CHECK(labels == std::vector<std::int32_t>{1, -1});
    CHECK(filler.state().has_value() == (damaged == Damaged::dropped));
    const auto dropped = filler.take_dropped();
    const std::string said = damaged == Damaged::dropped ? dropped.at(0) : filler.state().error().text();
    CHECK(contains(said, (folder.path / "train.tar").string() + ": offset "));
    CHECK(contains(said, "JPEG: the image data ends early"));
  }
}

TEST_CASE("neither workers nor announcements change a bit, and what is forgotten is forgotten") {
  const Folder folder;
  std::string tar;
  for (int i = 0; i < 24; ++i)
    tar += tar_member(fmt::format("{:02}.jpg", i), photo(i)) + tar_member(fmt::format("{:02}.cls", i), "1");
  folder.write("train.tar", tar + tar_end());
  folder.write("val.tar", tar + tar_end());
  const DataParts parts = load(folder, "webdataset").value();
  const Augmentation augmentation{.flip = true, .resized_crop = RandomResizedCrop{}, .jitter = {.hue = 0.2}};
  const std::size_t pixels = parts.train.pixels_per_sample();
  const auto rows_with = [&](unsigned workers, std::uint64_t announced, std::uint64_t first) {
    const BatchFiller filler(parts.train, {}, augmentation, {.memory = 64 * pixels, .workers = workers});
    const AugmentationKey key{.seed = 3, .epoch = 5};
    for (std::uint64_t i = 0; i < announced; ++i) filler.announce(i, key);
    std::vector<float> rows(8 * pixels);
    std::vector<std::int32_t> labels(8);
    filler.fill(
        8, [&](std::uint64_t i) { return first + i; }, key, rows, labels);
    return rows;
  };
  const std::vector<float> alone = rows_with(1, 0, 8);
  CHECK(rows_with(1, 24, 8) == alone);
  CHECK(rows_with(3, 24, 8) == alone);
  CHECK(rows_with(2, 10, 8) == alone);
  CHECK(rows_with(2, 24, 0) != alone);
}
