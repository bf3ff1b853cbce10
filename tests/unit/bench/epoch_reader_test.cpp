// Which values of a run count, and that a file that grows is not read again.
#include "src/bench/epoch_reader.hpp"

#include <fstream>

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::test;
using bench::EpochReader;
using bench::EpochValues;

namespace {

void append(const Folder& folder, const std::string& text) {
  std::ofstream(folder.path / "metrics.jsonl", std::ios::app) << text;
}

}  // namespace

TEST_CASE("values come from the lines at the ends of epochs, and from what a program reports") {
  const Folder folder;
  folder.write("metrics.jsonl",
               "{\"step\":50,\"epoch\":1,\"accuracy\":0.3}\n"
               "{\"step\":469,\"epoch\":1,\"test_accuracy\":0.86,\"epoch_loss\":0.6}\n[7]\n"
               "{\"step\":938,\"epoch\":2,\"test_accuracy\":0.88,\"epoch_loss\":0.3}\n{\"step\":93");
  CHECK(EpochReader("test_accuracy").of(folder.path) == EpochValues{{1, 0.86}, {2, 0.88}});
  CHECK(bench::last_epoch_metrics(folder.path).at("epoch_loss") == 0.3);
  CHECK(bench::last_epoch_metrics(folder.path).at("epoch") == 2);
  const Folder other;
  CHECK(EpochReader("score").of(other.path).empty());
  other.write("status.json", R"({"progress": {"step": 7, "epoch": 3, "score": 12.5}})");
  CHECK(EpochReader("score").of(other.path) == EpochValues{{3, 12.5}});
}

TEST_CASE("what is new is read, a line only once it is whole") {
  const Folder folder;
  EpochReader reader("score");
  CHECK(reader.of(folder.path).empty());
  append(folder, "{\"epoch\":1,\"score\":3}\n{\"epoch\":2,\"sco");
  CHECK(reader.of(folder.path) == EpochValues{{1, 3}});
  append(folder, "re\":4}\n");
  CHECK(reader.of(folder.path) == EpochValues{{1, 3}, {2, 4}});
  // Of what was read before nothing is read again.
  std::fstream(folder.path / "metrics.jsonl", std::ios::in | std::ios::out) << "{\"epoch\":7";
  CHECK(reader.of(folder.path) == EpochValues{{1, 3}, {2, 4}});
}

TEST_CASE("a file that a training has cut and goes on with is read from its beginning") {
  const Folder folder;
  EpochReader reader("score");
  append(folder, "{\"epoch\":1,\"score\":3}\n{\"epoch\":2,\"score\":4}\n");
  CHECK(reader.of(folder.path).size() == 2);
  folder.write("beside", "{\"epoch\":1,\"score\":3}\n");
  std::filesystem::rename(folder.path / "beside", folder.path / "metrics.jsonl");
  append(folder, "{\"epoch\":2,\"score\":5}\n{\"epoch\":3,\"score\":6}\n{\"epoch\":4,\"score\":7}\n");
  CHECK(reader.of(folder.path) == EpochValues{{1, 3}, {2, 5}, {3, 6}, {4, 7}});
}
