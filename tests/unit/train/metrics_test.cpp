// metrics.jsonl and the TensorBoard file, the latter read by an independent reader in Python.
#include <cstdio>

#include <doctest/doctest.h>

#include "runtime/train/event_file.hpp"
#include "runtime/train/metrics_log.hpp"
#include "src/base/json.hpp"
#include "src/base/quote.hpp"
#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

std::vector<Json> read_events(const std::filesystem::path& file) {
  const std::string command = shell_join(std::vector<std::string>{
                                  "/usr/bin/python3", TEST_DATA_DIR "/read_events.py", file.string()}) +
                              " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output(1 << 16, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  REQUIRE_MESSAGE(::pclose(pipe) == 0, output);
  std::vector<Json> out;
  for (std::size_t at = 0; at < output.size(); at = output.find('\n', at) + 1)
    out.push_back(*parse_json(output.substr(at, output.find('\n', at) - at), "events"));
  return out;
}

}  // namespace

TEST_CASE("TensorBoard's file holds a version and scalars with right checksums") {
  const Folder folder;
  auto file = EventFile::create(folder.path, 1000.5, 0);
  REQUIRE(file.has_value());
  const Scalar scalars[] = {{"train/loss", 0.5F}, {"train/accuracy", 0.75F}};
  REQUIRE(file->write(300, 1001.25, scalars).has_value());
  const auto events = read_events(file->path());
  REQUIRE(events.size() == 2);
  CHECK(events[0]["version"] == "brain.Event:2");
  CHECK(events[0]["wall_time"] == 1000.5);
  CHECK(events[1]["step"] == 300);
  CHECK(events[1]["scalars"]["train/loss"] == 0.5);
  CHECK(events[1]["scalars"]["train/accuracy"] == 0.75);
  CHECK(file->path().filename().string().starts_with("events.out.tfevents.0000001000."));
}

TEST_CASE("a resumed run tells TensorBoard from which step it goes on") {
  const Folder folder;
  const auto events = read_events(EventFile::create(folder.path, 1000, 450)->path());
  REQUIRE(events.size() == 2);
  CHECK(events[1]["session"] == 1);
  CHECK(events[1]["step"] == 450);
}

TEST_CASE("metrics.jsonl of a resumed run claims no step twice") {
  const Folder folder;
  {
    auto log = MetricsLog::open(folder.path, 0);
    for (const int step : {50, 100, 150}) REQUIRE(log->write(Json{{"step", step}, {"run", 1}}).has_value());
  }
  folder.write("metrics.jsonl",
               *read_file(folder.path / "metrics.jsonl") + "{\"step\": 20");  // torn by a kill
  {
    auto log = MetricsLog::open(folder.path, 120);
    REQUIRE(log->write(Json{{"step", 150}, {"run", 2}}).has_value());
  }
  CHECK(*read_file(folder.path / "metrics.jsonl") ==
        "{\"step\":50,\"run\":1}\n{\"step\":100,\"run\":1}\n{\"step\":150,\"run\":2}\n");
  REQUIRE(MetricsLog::open(folder.path, 0).has_value());
  CHECK(read_file(folder.path / "metrics.jsonl")->empty());
}

TEST_CASE("a folder that cannot be written is an error of io") {
  CHECK(MetricsLog::open("/proc/no/such", 0).error().kind == ErrorKind::io);
  CHECK(EventFile::create("/proc/no/such", 0, 0).error().kind == ErrorKind::io);
}
