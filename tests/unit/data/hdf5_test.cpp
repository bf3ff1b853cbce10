// Data sets of HDF5 as training data, contiguous or packed in chunks, and what is said of those that cannot
// be read.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/data/batch_filler.hpp"
#include "tests/unit/data/hdf5_support.hpp"
#include "tests/unit/data/number_support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

constexpr auto kPacked = Hdf5Writer::Lies::chunked_and_packed;

Result<DataParts> load(const Folder& folder, const std::string& section) {
  return load_data(*TRY(number_source(folder, "format: hdf5, " + section)), 1);
}

// What is printed on stderr goes into a file until end().
class StderrToFile {
 public:
  explicit StderrToFile(const std::filesystem::path& path) : before_(::dup(STDERR_FILENO)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(::dup2(file, STDERR_FILENO) >= 0);
    ::close(file);
  }
  void end() const {
    std::fflush(stderr);
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

// At most so many open files, until its end.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit low{most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::vector<float> rows_of(const Dataset& data, const std::vector<std::uint64_t>& samples) {
  const BatchFiller filler(data, {}, {}, {.memory = 1 << 20, .workers = 2});
  std::vector<float> out(samples.size() * data.pixels_per_sample());
  std::vector<std::int32_t> labels(samples.size());
  for (const std::uint64_t sample : samples) filler.announce(sample, std::nullopt);
  filler.fill(
      samples.size(), [&](std::uint64_t i) { return samples[i]; }, std::nullopt, out, labels);
  REQUIRE_MESSAGE(filler.state().has_value(), filler.state().error().text());
  return out;
}

}  // namespace

TEST_CASE("data sets of one file, contiguous and packed, in groups, with those for testing beside them") {
  for (const auto lies : {Hdf5Writer::Lies::contiguous, kPacked}) {
    const Folder folder;
    {
      Hdf5Writer file(folder.path / "all.h5");
      file.group("train");
      file.floats("train/images", {5, 2, 1, 3}, counting(30), lies);
      file.integers("train/labels", {5}, {0, 1, 2, 1, 0});
      file.floats("test", {2, 2, 1, 3}, counting(12, 50), lies);
      file.integers("answers", {2, 1}, {1, 0});
    }
    const auto data =
        load(folder,
             "file: $/all.h5, samples: train/images, labels: /train/labels, test-samples: test, "
             "test-labels: answers");
    REQUIRE_MESSAGE(data.has_value(), data.error().text());
    CHECK(data->train.shape.channels == 2);
    CHECK(data->train.shape.classes == 3);
    CHECK(data->train.labels == std::vector<std::uint16_t>{0, 1, 2, 1, 0});
    CHECK(data->test.labels == std::vector<std::uint16_t>{1, 0});
    CHECK(rows_of(data->train, {4, 1}) == std::vector<float>{24, 25, 26, 27, 28, 29, 6, 7, 8, 9, 10, 11});
    CHECK(rows_of(data->test, {1}) == counting(6, 56));
  }
}

TEST_CASE("the files of a folder are one data set, in the order of their names") {
  const Folder folder;
  for (const int number : {1, 0, 2}) {
    Hdf5Writer file(folder.path / (number == 2 ? "val-0.h5" : fmt::format("train-{}.h5", number)));
    file.floats("x", {2, 4}, counting(8, static_cast<float>(100 * number)), kPacked);
    file.integers("y", {2}, {number, 0});
  }
  const auto data = load(folder, "dir: $, samples: x, labels: y");
  REQUIRE_MESSAGE(data.has_value(), data.error().text());
  CHECK(data->train.count == 4);
  CHECK(data->test.count == 2);
  CHECK(data->train.labels == std::vector<std::uint16_t>{0, 0, 1, 0});
  CHECK(rows_of(data->train, {3, 0}) == std::vector<float>{104, 105, 106, 107, 0, 1, 2, 3});
}

TEST_CASE("a data set that is not there, a group, and a file that is none are named") {
  const Folder folder;
  {
    Hdf5Writer file(folder.path / "x.h5");
    file.group("deep");
    file.floats("deep/x", {2, 4}, counting(8));
  }
  const auto refusal = [&](const std::string& section) {
    const auto data = load(folder, section + ", train: 0.5");
    REQUIRE_FALSE(data.has_value());
    return data.error().text();
  };
  CHECK(contains(refusal("file: $/x.h5, samples: images"), "x.h5: has no data set 'images'"));
  CHECK(contains(refusal("file: $/x.h5, samples: other/x"), "x.h5: has no data set 'other/x'"));
  CHECK(contains(refusal("file: $/x.h5, samples: deep"), "x.h5: deep: cannot be opened as a data set"));
  CHECK(contains(refusal("file: $/y.h5, samples: x"), "y.h5"));
  CHECK(contains(refusal("file: $/x.h5"), "train.data"));
  folder.write("x.h5", "no HDF5 at all");
  CHECK(contains(refusal("file: $/x.h5, samples: x"), "HDF5 cannot open this file of 14 bytes: "));
}

TEST_CASE("an HDF5 file that is cut short is refused when it is opened") {
  const Folder folder;
  { Hdf5Writer(folder.path / "x.h5").floats("x", {64, 64}, counting(4096)); }
  std::filesystem::resize_file(folder.path / "x.h5", 9000);
  const auto data = load(folder, "file: $/x.h5, samples: x");
  REQUIRE_FALSE(data.has_value());
  CHECK(contains(data.error().text(), "x.h5: HDF5 cannot open this file of 9000 bytes: truncated file"));
}

TEST_CASE("a nan is named with its index") {
  const Folder folder;
  std::vector<float> numbers = counting(12);
  numbers[9] = std::numeric_limits<float>::quiet_NaN();
  { Hdf5Writer(folder.path / "x.h5").floats("x", {3, 4}, numbers, kPacked); }
  const auto data = load(folder, "file: $/x.h5, samples: x");
  REQUIRE(data.has_value());
  const BatchFiller filler(data->train, {}, {}, {.memory = 1 << 20, .workers = 1});
  std::vector<float> rows(12);
  std::vector<std::int32_t> labels(3);
  CHECK(filler.fill(
            3, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels) == 2);
  REQUIRE_FALSE(filler.state().has_value());
  CHECK(contains(filler.state().error().text(), "x.h5: x[2, 1]: sample 2 has nan here"));
}

TEST_CASE("a packed chunk that is damaged is named with the sample, and nothing else is printed") {
  const Folder folder;
  std::vector<float> numbers(8000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::sin(static_cast<float>(i * i));
  { Hdf5Writer(folder.path / "x.h5").floats("x", {4, 2000}, numbers, kPacked); }  // chunks of two samples
  std::fstream file(folder.path / "x.h5", std::ios::in | std::ios::out | std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t chunk = bytes.rfind("\x78\x9c", bytes.size() - 5000);  // zlib's head
  REQUIRE(chunk != std::string::npos);
  file.seekp(static_cast<std::streamoff>(chunk + 500));
  file << std::string(300, '?');
  file.close();
  const auto data = load(folder, "file: $/x.h5, samples: x");
  REQUIRE(data.has_value());
  StderrToFile printed(folder.path / "printed");
  const BatchFiller filler(data->train, {}, {}, {.memory = 1 << 20, .workers = 2});
  std::vector<float> rows(8000);
  std::vector<std::int32_t> labels(4);
  for (std::uint64_t sample = 0; sample < 4; ++sample) filler.announce(sample, std::nullopt);
  filler.fill(
      4, [](std::uint64_t i) { return i; }, std::nullopt, rows, labels);
  printed.end();
  REQUIRE_FALSE(filler.state().has_value());
  const std::string told = filler.state().error().text();
  INFO(told);
  CHECK(contains(told, "x.h5: x: sample "));
  const bool says_why = contains(told, "cannot be read: inflate() failed") ||
                        contains(told, "cannot be read: filter returned failure");  // HDF5 1.14
  CHECK(says_why);
  CHECK(std::filesystem::file_size(folder.path / "printed") == 0);
}

TEST_CASE("a folder of more files than may be open") {
  const Folder folder;
  constexpr int kFiles = 80;
  for (int number = 0; number < kFiles; ++number) {
    Hdf5Writer file(folder.path / fmt::format("f{:02}.h5", number));
    file.floats("x", {2, 2}, counting(4, static_cast<float>(4 * number)), kPacked);
  }
  const DescriptorLimit limit(64);
  const auto data = load(folder, "dir: $, samples: x, train: 0.5");
  REQUIRE_MESSAGE(data.has_value(), data.error().text());
  CHECK(rows_of(data->train, {159, 0, 80, 159}) == std::vector<float>{318, 319, 0, 1, 160, 161, 318, 319});
}
