// The table of data formats: each row reads its own keys and refuses those of others.
#include "runtime/data/data_format.hpp"

#include <doctest/doctest.h>

namespace dlrun::runtime {
namespace {

Result<DataSpec> read_section(const std::string& section) {
  const yaml::Node node = yaml::parse(section, "job.yaml").value();
  yaml::Fields fields = TRY(yaml::Fields::of(node, "train.data"));
  DataSpec out = TRY(read_data_source(fields));
  TRY(fields.finish());
  return out;
}

}  // namespace

TEST_CASE("every format of the table reads a section and gives a source with its channels and its place") {
  struct Row {
    std::string section;
    std::size_t channels;
    std::string place;
  };
  const std::vector<Row> rows = {
      {"{format: idx, dir: /a, classes: 7}", 1, "/a"},
      {"{format: cifar10, dir: /b}", 3, "/b"},
      {"{format: images, dir: /c, size: [24, 32], damaged: drop}", 3, "/c"},
      {"{format: list, list: /d/l, test-list: /d/t, dir: /d, classes: 3}", 3, "/d/l"},
      {"{format: webdataset, dir: /e, classes: 3, size: 32}", 3, "/e"},
      {"{format: tfrecord, dir: /f, classes: 3, first-label: 1, image-key: i, label-key: l}", 3, "/f"},
      {"{format: lmdb, dir: /g, classes: 3, channels: 1, damaged: drop}", 1, "/g"},
      {"{format: tokens, dir: /h, context: 8}", 1, "/h"},
      {"{format: numpy, dir: /i, samples: x.npy, labels: y.npy, axes: HWC, damaged: drop}", 0, "/i"},
      {"{format: hdf5, file: /j.h5, samples: x, targets: y}", 0, "/j.h5"},
      {"{format: synthetic, shape: [2, 4, 4], samples: 5}", 2, ""}};
  REQUIRE(rows.size() == data_formats().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].section);
    CHECK(rows[i].section.find(std::string(data_formats()[i].name)) != std::string::npos);
    const auto spec = read_section(rows[i].section);
    REQUIRE_MESSAGE(spec.has_value(), spec.error().text());
    CHECK(spec->source->channels() == rows[i].channels);
    CHECK(spec->source->place() == rows[i].place);
    CHECK(spec->train_share == 1);
  }
}

TEST_CASE("a key of another format is unknown, and an unknown format is named with the nearest") {
  CHECK(read_section("{format: cifar10, dir: /b, size: 4}").error().what ==
        "unknown key 'size' in 'train.data'");
  CHECK(read_section("{format: images, dir: /c, classes: 4}").error().what ==
        "unknown key 'classes' in 'train.data'");
  CHECK(read_section("{format: image, dir: /c}").error().hint == "did you mean 'images'?");
  CHECK(read_section("{dir: /c}").error().what == "'train.data.format' is missing");
}

TEST_CASE("a synthetic source is probed and loaded without a file, and notes nothing") {
  const auto spec =
      read_section("{format: synthetic, shape: [2, 4, 5], samples: 16, classes: 3, train: 0.5}");
  REQUIRE(spec);
  CHECK(spec->train_share == 0.5);
  const auto shape = spec->source->probe();
  REQUIRE(shape);
  CHECK(shape->width == 5);
  CHECK(shape->classes == 3);
  const auto parts = load_data(*spec->source, 1);
  REQUIRE(parts);
  CHECK(parts->train.count == 16);
  CHECK(parts->test.count == 2);
  CHECK(parts->notes.empty());
}

}  // namespace dlrun::runtime
