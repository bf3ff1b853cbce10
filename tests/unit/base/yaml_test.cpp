#include "src/base/yaml.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "tests/unit/cpu_growth.hpp"

using namespace dlrun;

namespace {
std::string error_of(std::string_view text) {
  const auto parsed = yaml::parse(text, "job.yaml");
  REQUIRE_FALSE(parsed.has_value());
  return parsed.error().text();
}

yaml::Node list_of_maps(std::size_t items) {
  std::string text = "layers:\n";
  for (std::size_t i = 0; i < items; ++i) text += "  - {convolution: 8, kernel: 3, bias: false}\n";
  return yaml::parse(text, "job.yaml").value();
}
}  // namespace

TEST_CASE("a tree knows where each node stands") {
  const auto root = yaml::parse("name: flowers\nresources:\n  nodes: 2\n", "job.yaml");
  REQUIRE(root.has_value());
  CHECK(root->find("resources")->find("nodes")->scalar == "2");
  CHECK(root->find("resources")->find("nodes")->source == "job.yaml:3:10");
  CHECK(root->key_sources[1] == "job.yaml:2:1");
}

TEST_CASE("a duplicate key is an error that names both places") {
  CHECK(error_of("a: 1\nb: 2\na: 3\n") ==
        "job.yaml:3:1: duplicate key 'a'; it was first set at job.yaml:1:1");
}

// Minutes where each key is compared with all before it.
TEST_CASE("a map of very many keys is read and overlaid") {
  std::string text = "set:\n";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("  VARIABLE_{}: {}\n", i, i);
  CHECK(error_of(text + "  VARIABLE_7: again\n") ==
        "job.yaml:100002:3: duplicate key 'VARIABLE_7'; it was first set at job.yaml:9:3");
  const auto below = yaml::parse(text, "below.yaml"), above = yaml::parse(text, "above.yaml");
  const yaml::Node all = yaml::overlay(*below, *above);
  REQUIRE(all.entries[0].second.entries.size() == 100'000);
  CHECK(all.entries[0].second.entries[99'999].second.source == "above.yaml:100001:19");
}

TEST_CASE("what a job file cannot mean is refused with its place") {
  CHECK(error_of("a: &x 1\nb: *x\n").starts_with("job.yaml:1:4: anchors"));
  CHECK(error_of("a: !secret 1\n").starts_with("job.yaml:1:4: tags"));
  CHECK(error_of("a: 1\n---\nb: 2\n").find("second YAML document") != std::string::npos);
  CHECK(error_of("a: [1, 2\n").starts_with("job.yaml:2:1: not valid YAML"));
  CHECK(error_of("a: \x01\n").find("control character 0x01") != std::string::npos);
  CHECK(error_of(std::string(100000, '[')).find("nested deeper") != std::string::npos);
  CHECK(error_of(std::string(100000, '-')).size() > 0);
  CHECK(error_of("? [a]\n: b\n").find("a key must be plain text") != std::string::npos);
  CHECK(error_of("a:\n  b: 1\n\tc: 2\nd: 3\n") ==
        "job.yaml:3:1: this line is indented with a tab; YAML allows only spaces\n"
        "  hint: replace the tab with spaces");
  CHECK(error_of("a: [1,\n\t2]\nb: [\n").find("tab") == std::string::npos);
  CHECK(error_of(std::string("\xff\xfe\x61\0:\0", 6)).starts_with("job.yaml: the file is UTF-16, not UTF-8"));
}

TEST_CASE("later layers win leaf by leaf and keep their source") {
  auto low = yaml::parse("train: {epochs: 12, batch: 64}\n", "site.yaml");
  auto high = yaml::parse("train: {epochs: 3}\n", "job.yaml");
  auto merged = yaml::overlay(*low, *high);
  REQUIRE(yaml::set_path(merged, "train.batch", "32", "--set train.batch").has_value());
  CHECK(merged.find("train")->find("epochs")->source == "job.yaml:1:17");
  CHECK(merged.find("train")->find("batch")->scalar == "32");
  CHECK(merged.find("train")->find("batch")->source == "--set train.batch");
}

TEST_CASE("--set refuses a path through a value") {
  auto root = yaml::parse("train: 5\n", "job.yaml");
  const auto set = yaml::set_path(*root, "train.epochs", "1", "--set train.epochs");
  REQUIRE_FALSE(set.has_value());
  CHECK(set.error().text() ==
        "--set train.epochs: cannot set 'train.epochs': 'train' is not a map but stands at job.yaml:1:8");
  CHECK_FALSE(yaml::set_path(*root, "a..b", "1", "--set").has_value());
}

TEST_CASE("a tree survives the way through JSON with its sources") {
  const auto root = yaml::parse("a: {b: [1, 'two', 3.5, true, 1.10]}\nc: ~\n", "job.yaml");
  const Json json = yaml::to_json_with_sources(*root);
  CHECK(to_text(json["value"]) == R"({"a":{"b":[1,"two",3.5,true,"1.10"]},"c":null})");
  const auto back = yaml::from_json_with_sources(*parse_json(to_text(json), "t"));
  REQUIRE(back.has_value());
  CHECK(back->find("a")->find("b")->items[1].source == "job.yaml:1:12");
  CHECK(back->key_sources[1] == "job.yaml:2:1");
  CHECK(back->find("a")->key_sources[0] == "job.yaml:1:5");
  CHECK(yaml::to_json(*back) == yaml::to_json(*root));
}

TEST_CASE("a quote that is never closed does not take the rest of the file") {
  for (const char* text :
       {"a: {b: 1}\nc: \"INFO\n", "a: 1\nc: 'INFO\nd: 2\n", "c: \"INFO\n\n", "- x\n- \"y\n"}) {
    CAPTURE(text);
    const auto read = yaml::parse(text, "job.yaml");
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().what == "a quoted text has no closing quote");
    CHECK(read.error().where.starts_with("job.yaml:"));
  }
  for (const char* text : {"a: don't\n", "a: \"x\"", "a: |\n  it's\n  \"open\n", "a: 'x' # it's\n",
                           "a: \"x\n  y\"\n", "# don't"}) {
    CAPTURE(text);
    CHECK(yaml::parse(text, "job.yaml").has_value());
  }
}

TEST_CASE("a path that two nodes have keeps its first place and the last source") {
  const auto root = yaml::parse("a: {b: 1}\na/b: 2\n", "job.yaml");
  CHECK(to_text(yaml::to_json_with_sources(*root)["sources"]) ==
        R"({"":"job.yaml:1:1","/a":"job.yaml:1:4","/a/b":"job.yaml:2:6"})");
}

TEST_CASE("a large tree goes through JSON with its sources in linear time") {
  const yaml::Node large = list_of_maps(8'000), small = list_of_maps(1'000);
  const auto round_trip = [&](std::size_t items) {
    return yaml::from_json_with_sources(yaml::to_json_with_sources(items == 1'000 ? small : large)).value();
  };
  const yaml::Node back = round_trip(8'000);
  CHECK(back.entries[0].second.items[7'999].entries[2].second.source == "job.yaml:8001:39");
  CHECK(back.entries[0].second.items[7'999].key_sources[1] == "job.yaml:8001:22");
  CHECK(test::cpu_growth(1'000, round_trip) < test::kMaxGrowth);
}
