// Arrays of NumPy as training data: each way in which they lie becomes the rows that an engine reads, and
// every fault is named with its file and offset.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "runtime/data/batch_filler.hpp"
#include "tests/unit/data/number_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

DataParts load(const Folder& folder, const std::string& section) {
  const auto source = number_source(folder, section);
  REQUIRE_MESSAGE(source.has_value(), source.error().text());
  auto parts = load_data(**source, 1);
  REQUIRE_MESSAGE(parts.has_value(), parts.error().text());
  const auto probed = (*source)->probe();
  REQUIRE(probed.has_value());
  CHECK(probed->numbers() == parts->train.shape.numbers());
  return std::move(*parts);
}

// The samples in this order, and the labels.
struct Filled {
  std::vector<float> numbers;
  std::vector<std::int32_t> labels;
};

Filled fill(const Dataset& data, const std::vector<std::uint64_t>& samples,
            const Conversion& conversion = {}) {
  const BatchFiller filler(data, conversion, {}, {.memory = 1 << 20, .workers = 2});
  Filled out;
  out.numbers.resize(samples.size() * data.pixels_per_sample());
  out.labels.resize(samples.size());
  for (const std::uint64_t sample : samples) filler.announce(sample, std::nullopt);
  filler.fill(
      samples.size(), [&](std::uint64_t i) { return samples[i]; }, std::nullopt, out.numbers, out.labels);
  REQUIRE_MESSAGE(filler.state().has_value(), filler.state().error().text());
  return out;
}

Error refusal(const Folder& folder, const std::string& section) {
  const auto source = number_source(folder, section);
  if (!source) return source.error();
  const auto parts = load_data(**source, 1);
  REQUIRE_FALSE(parts.has_value());
  return parts.error();
}

const std::string kFiles = "format: numpy, dir: $, samples: x.npy, labels: y.npy, train: 0.5";

// Four samples of 2x3 numbers in three classes.
void write_plain(const Folder& folder) {
  folder.write("x.npy", npy("<f4", "(4, 2, 3)", raw_bytes(counting(24))));
  folder.write("y.npy", npy("<i8", "(4,)", raw_bytes(std::vector<std::int64_t>{0, 2, 1, 2})));
}

}  // namespace

TEST_CASE("samples along the first axis of a .npy file, with labels in another") {
  const Folder folder;
  write_plain(folder);
  const DataParts data = load(folder, kFiles);
  CHECK(data.train.count == 4);
  CHECK(data.train.shape.channels == 1);
  CHECK(data.train.shape.height == 2);
  CHECK(data.train.shape.width == 3);
  CHECK(data.train.shape.classes == 3);
  CHECK(data.test.count == 0);
  CHECK(contains(data.notes[0], "found 3 classes, 4 training and 0 test samples in"));
  const Filled rows = fill(data.train, {3, 0});
  CHECK(rows.numbers == std::vector<float>{18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5});
  CHECK(rows.labels == std::vector<std::int32_t>{2, 0});
}

TEST_CASE("every type of number is read as it is") {
  const auto check = [](const std::string& type, const auto& numbers, const std::vector<float>& wanted) {
    CAPTURE(type);
    const Folder folder;
    folder.write("x.npy", npy(type, "(1, 3)", raw_bytes(numbers)));
    CHECK(fill(load(folder, "format: numpy, dir: $, samples: x.npy").train, {0}).numbers == wanted);
  };
  check("<f2", std::vector<std::uint16_t>{0x3c00, 0xc100, 0x0001}, {1, -2.5F, 0x1p-24F});
  check("<f4", std::vector<float>{1.5F, -3, 1e30F}, {1.5F, -3, 1e30F});
  check("<f8", std::vector<double>{1.5, -3, 1e30}, {1.5F, -3, 1e30F});
  check("|u1", std::vector<std::uint8_t>{0, 128, 255}, {0, 128, 255});
  check("|i1", std::vector<std::int8_t>{-128, 0, 127}, {-128, 0, 127});
  check("<u2", std::vector<std::uint16_t>{0, 256, 65535}, {0, 256, 65535});
  check("<i2", std::vector<std::int16_t>{-32768, 1, 32767}, {-32768, 1, 32767});
  check("<u4", std::vector<std::uint32_t>{0, 1, 1U << 31}, {0, 1, 0x1p31F});
  check("<i4", std::vector<std::int32_t>{-7, 1, 1 << 30}, {-7, 1, 0x1p30F});
  check("<u8", std::vector<std::uint64_t>{0, 1, 1ULL << 40}, {0, 1, 0x1p40F});
  check("<i8", std::vector<std::int64_t>{-7, 1, 1LL << 40}, {-7, 1, 0x1p40F});
}

TEST_CASE("channels last become channels first, and each channel has its mean and std") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(1, 2, 2, 2)", raw_bytes(counting(8))));
  const DataParts data = load(folder, "format: numpy, dir: $, samples: x.npy, axes: HWC");
  CHECK(data.train.shape.channels == 2);
  CHECK(fill(data.train, {0}).numbers == std::vector<float>{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(fill(data.train, {0}, {.mean = {2, 1}, .std_dev = {2, 1}}).numbers ==
        std::vector<float>{-1, 0, 1, 2, 0, 2, 4, 6});
  CHECK(fill(data.train, {0}, {.mean = {1}, .std_dev = {}, .scale = 10}).numbers ==
        std::vector<float>{-1, 19, 39, 59, 9, 29, 49, 69});
  const Filled logs = fill(data.train, {0}, {.transform = NumberScaling::Transform::log1p});
  CHECK(logs.numbers[3] == doctest::Approx(std::log1p(6.0F)));
}

TEST_CASE("a folder of .npy files, each one sample, in the order of names and parts by their words") {
  const Folder folder;
  for (const int number : {2, 0, 1})
    folder.write(fmt::format("train-{}.npy", number),
                 npy("<f4", "(1, 2, 2)", raw_bytes(counting(4, static_cast<float>(10 * number)))));
  folder.write("test-0.npy", npy("<f4", "(1, 2, 2)", raw_bytes(counting(4, 50))));
  const DataParts data = load(folder, "format: numpy, dir: $");
  CHECK(data.train.count == 3);
  CHECK(data.test.count == 1);
  CHECK(data.train.shape.classes == 1);  // there are no labels
  CHECK(fill(data.train, {2, 0}).numbers == std::vector<float>{20, 21, 22, 23, 0, 1, 2, 3});
  CHECK(fill(data.test, {0}).numbers == std::vector<float>{50, 51, 52, 53});
  folder.write("y.npy", npy("|u1", "(3,)", raw_bytes(std::vector<std::uint8_t>{1, 0, 1})));
  folder.write("y-test.npy", npy("|u1", "(1,)", raw_bytes(std::vector<std::uint8_t>{3})));
  const DataParts labelled = load(folder, "format: numpy, dir: $, labels: y.npy, test-labels: y-test.npy");
  CHECK(labelled.train.labels == std::vector<std::uint16_t>{1, 0, 1});
  CHECK(labelled.train.shape.classes == 4);
}

TEST_CASE("the arrays of a .npz file, stored or packed, and those of a second file for testing") {
  for (const Packing packing : {Packing::stored, Packing::deflated}) {
    const Folder folder;
    const std::string labels = npy("<f4", "(4, 1)", raw_bytes(std::vector<float>{0, 1, 1, 0}));
    folder.write(
        "train.npz",
        npz({{"labels", labels}, {"images", npy("<f4", "(4, 6)", raw_bytes(counting(24)))}}, packing));
    folder.write(
        "test.npz",
        npz({{"images", npy("<f4", "(4, 6)", raw_bytes(counting(24, 100)))}, {"labels", labels}}, packing));
    const DataParts data = load(
        folder, "format: numpy, file: $/train.npz, test-file: $/test.npz, samples: images, labels: labels");
    CHECK(data.train.count == 4);
    CHECK(data.train.shape.width == 6);
    CHECK(data.train.labels == std::vector<std::uint16_t>{0, 1, 1, 0});
    CHECK(fill(data.train, {1}).numbers == counting(6, 6));
    CHECK(fill(data.test, {1}).numbers == counting(6, 106));
    CHECK(refusal(folder, "format: numpy, file: $/train.npz, samples: image, labels: labels").hint ==
          "it has 'labels', 'images'");
  }
}

TEST_CASE("a packed array larger than data.memory is refused, and a damaged one by its checksum") {
  const Folder folder;
  std::string file = npz({{"x", npy("<f4", "(4, 64)", raw_bytes(counting(256)))}}, Packing::deflated);
  folder.write("x.npz", file);
  CHECK(contains(refusal(folder, "format: numpy, file: $/x.npz, samples: x, memory: 1KiB").what,
                 "more than train.data.memory"));
  file[200] = static_cast<char>(file[200] ^ 1);
  folder.write("x.npz", file);
  const Error error = refusal(folder, "format: numpy, file: $/x.npz, samples: x");
  CHECK(contains(error.where, "x.npz: offset 35"));
  folder.write("x.npz", file.substr(0, file.size() - 5));
  CHECK(
      contains(refusal(folder, "format: numpy, file: $/x.npz, samples: x").what, "is not found at its end"));
}

TEST_CASE("headers that cannot be read say why, where, and what to do") {
  const auto check = [](const std::string& content, const std::string& what, const std::string& where) {
    const Folder folder;
    folder.write("x.npy", content);
    const Error error = refusal(folder, "format: numpy, dir: $, samples: x.npy");
    CAPTURE(error.text());
    CHECK(error.kind == ErrorKind::input);
    CHECK(contains(error.what, what));
    CHECK(contains(error.where, where));
  };
  check("PK\x03\x04 something else", "its first bytes are not", "x.npy");
  check(npy(">f4", "(1, 2)", "12345678"), "the numbers are big-endian (>f4)", "x.npy: offset 25");
  check(npy("<f4", "(1, 2)", "12345678", "True"), "Fortran's order", "x.npy: offset");
  check(npy("<c8", "(1, 2)", "1234567812345678"), "of type '<c8'", "x.npy: offset");
  check(npy("|O", "(1, 2)", "12345678"), "of type '|O'", "x.npy: offset");
  check(npy("<f4", "(1, 0)", ""), "an extent is 0", "x.npy: offset");
  check(npy("<f4", "(99999999999, 99999999999)", ""), "larger than any file", "x.npy: offset");
  check(npy("<f4", "()", "1234"), "a single number", "x.npy");
  check(npy("<f4", "(1, 1, 1, 1, 1, 1)", "1234"), "a sample has 5 axes", "x.npy");
  check(npy("<f4", "(2, 3)", raw_bytes(counting(5))), "ends at 148", "x.npy");
  check(npy("<f4", "(2, 3)", raw_bytes(counting(7))), "ends at 156", "x.npy");
  check(npy("<f4", "(2, 3)", "").substr(0, 40), "the header has 128 bytes, and the file 40", "x.npy");
}

TEST_CASE("labels that are no classes are named with file and offset") {
  const Folder folder;
  write_plain(folder);
  const auto check = [&](const std::string& labels, const std::string& what, const std::string& where,
                         const std::string& more = "") {
    folder.write("y.npy", labels);
    const Error error = refusal(folder, kFiles + more);
    CAPTURE(error.text());
    CHECK(contains(error.what, what));
    CHECK(contains(error.where, where));
  };
  check(npy("<f4", "(4,)", raw_bytes(std::vector<float>{0, 1, 0.5F, 1})),
        "label 0.5 of sample 2 is not a whole number", "y.npy: offset 136");
  check(npy("<i4", "(4,)", raw_bytes(std::vector<std::int32_t>{0, -1, 0, 1})),
        "label -1 of sample 1 is out of range", "y.npy: offset 132");
  check(npy("<i4", "(4,)", raw_bytes(std::vector<std::int32_t>{0, 5, 0, 1})),
        "label 5 of sample 1 is out of range [0, 2]", "y.npy: offset 132", ", classes: 3");
  check(npy("<f8", "(4,)", raw_bytes(std::vector<double>{0, 1, 1, std::nan("")})), "label nan of sample 3",
        "y.npy: offset 152");
  check(npy("<i4", "(3,)", raw_bytes(std::vector<std::int32_t>{0, 1, 1})), "has 3 rows for 4 samples",
        "y.npy");
  check(npy("<i4", "(4, 2)", raw_bytes(std::vector<std::int32_t>(8))), "has 2 numbers for each sample",
        "y.npy");
}

TEST_CASE("a sample with nan is an error with its offset, or is left out and listed") {
  const Folder folder;
  std::vector<float> numbers = counting(24);
  numbers[15] = std::numeric_limits<float>::quiet_NaN();
  write_plain(folder);
  folder.write("x.npy", npy("<f4", "(4, 2, 3)", raw_bytes(numbers)));
  for (const bool drops : {false, true}) {
    const DataParts data = load(folder, kFiles + (drops ? ", damaged: drop" : ""));
    const BatchFiller filler(data.train, {}, {}, {.memory = 1 << 20, .workers = 1});
    std::vector<float> rows(24);
    std::vector<std::int32_t> labels(4);
    const std::uint64_t counted = filler.fill(
        4, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
    CHECK(counted == 3);
    CHECK(labels == std::vector<std::int32_t>{0, 2, -1, 2});
    CHECK(rows[12] == 0);
    CHECK(filler.state().has_value() == drops);
    const auto dropped = filler.take_dropped();
    CHECK(dropped.size() == (drops ? 1 : 0));
    const std::string said = drops ? dropped.at(0) : filler.state().error().text();
    CHECK(contains(said, "x.npy: offset 188: sample 2 has nan here"));
  }
}

TEST_CASE("a file that is cut short while it is used is named with the offset") {
  const Folder folder;
  write_plain(folder);
  const DataParts data = load(folder, kFiles);
  std::filesystem::resize_file(folder.path / "x.npy", 128 + 60);
  const BatchFiller filler(data.train, {}, {}, {.memory = 1 << 20, .workers = 1});
  std::vector<float> rows(24);
  std::vector<std::int32_t> labels(4);
  filler.fill(
      4, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
  REQUIRE_FALSE(filler.state().has_value());
  CHECK(contains(filler.state().error().text(), "x.npy: offset 176: the file ends 12 bytes before"));
}

TEST_CASE("sections that contradict themselves are refused at their place") {
  const Folder folder;
  write_plain(folder);
  CHECK(contains(refusal(folder, "format: numpy, samples: x.npy").what, "one of file and dir"));
  CHECK(contains(refusal(folder, "format: numpy, dir: $, file: $/x.npz, samples: x").what,
                 "one of file and dir"));
  CHECK(contains(refusal(folder, "format: numpy, dir: $, test-file: $/x.npz").what,
                 "train.data.file is missing"));
  CHECK(contains(refusal(folder, "format: numpy, file: $/x.npz").what, "train.data.samples"));
  CHECK(contains(refusal(folder, kFiles + ", axes: WH").what, "'WH' is not an order of a sample's axes"));
  CHECK(contains(refusal(folder, kFiles + ", axes: CHW").what,
                 "has samples of shape [2, 3], and data.axes is CHW"));
  CHECK(contains(refusal(folder, "format: numpy, dir: $, samples: x.npy, labels: y.npy").what,
                 "there are no test samples"));
}

TEST_CASE("another data set has another fingerprint") {
  const Folder folder;
  write_plain(folder);
  const std::uint64_t before = load(folder, kFiles).train.fingerprint();
  CHECK(load(folder, kFiles).train.fingerprint() == before);
  folder.write("x.npy", npy("<f4", "(4, 2, 3)", raw_bytes(counting(24, 1))));
  CHECK(load(folder, kFiles).train.fingerprint() != before);
}
