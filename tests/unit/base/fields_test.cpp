#include "src/base/fields.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {
struct Read {
  yaml::Node root;
  yaml::Fields fields;
};
yaml::Node tree(std::string_view text) {
  return yaml::parse(text, "job.yaml").value();
}
}  // namespace

TEST_CASE("keys are read by type, with defaults") {
  const yaml::Node root = tree("epochs: 3\nlr: 0.05\nwalltime: 8:00:00\nlist: [a, b]\n");
  auto fields = yaml::Fields::of(root, "train").value();
  CHECK(*fields.integer_or("epochs", 1, 1, 100) == 3);
  CHECK(*fields.integer_or("batch", 64, 1, 100) == 64);
  CHECK(*fields.number_or("lr", 1, 0, 10) == 0.05);
  CHECK(fields.duration_or("walltime", Seconds(0))->count() == 28800);
  CHECK(fields.text_list("list")->size() == 2);
  CHECK(fields.finish().has_value());
}

TEST_CASE("unknown keys are refused with the nearest valid name and every place") {
  const yaml::Node root = tree("epochs: 3\nbacth: 64\nzebra: 1\n");
  auto fields = yaml::Fields::of(root, "train").value();
  fields.known("epochs");
  fields.known("batch");
  const auto done = fields.finish();
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().text() ==
        "job.yaml:2:1: unknown key 'bacth' in 'train'\n"
        "  job.yaml:3:1: unknown key 'zebra' in 'train'; valid names: epochs, batch\n"
        "  hint: did you mean 'batch'?");
}

TEST_CASE("a wrong type names the key, the place and what was seen") {
  const yaml::Node root = tree("epochs: many\nlr: [1]\n");
  auto fields = yaml::Fields::of(root, "train").value();
  CHECK(fields.integer_or("epochs", 1, 1, 9).error().text() ==
        "job.yaml:1:9: train.epochs: 'many' is not a whole number");
  CHECK(fields.number_or("lr", 1, 0, 1).error().text() ==
        "job.yaml:2:5: train.lr must be a number, not a list");
  CHECK(fields.text("model").error().text().find("'train.model' is missing") != std::string::npos);
}

TEST_CASE("a key that stayed in a map which --set was laid over is told as such") {
  yaml::Node root = tree("data: {format: idx, dir: /d}\ntypo: 1\n");
  REQUIRE(yaml::set_path(root, "data", "{format: synthetic}", "--set data"));
  const auto error_in = [](const yaml::Node& node, const std::string& name, const char* known) {
    auto fields = yaml::Fields::of(node, name).value();
    fields.known(known);
    return fields.finish().error().text();
  };
  CHECK(error_in(*root.find("data"), "data", "format") ==
        "job.yaml:1:21: unknown key 'dir' in 'data'\n"
        "  hint: --set data keeps the other keys of the map; to replace the map, put --set data=null first");
  // The map above has a key of --set, and was not given whole.
  CHECK(error_in(root, "", "data") == "job.yaml:2:1: unknown key 'typo'\n  hint: valid names: data");
  REQUIRE(yaml::set_path(root, "data", "null", "--set data"));
  REQUIRE(yaml::set_path(root, "data", "{format: synthetic}", "--set data"));
  CHECK(root.find("data")->entries.size() == 1);
  REQUIRE(yaml::set_path(root, "data", "{fromat: idx}", "--set data"));
  CHECK(error_in(*root.find("data"), "data", "format").find("did you mean 'format'?") != std::string::npos);
}
