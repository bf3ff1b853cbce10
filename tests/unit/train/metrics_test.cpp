// metrics.jsonl and the TensorBoard file, the latter read by an independent reader in Python.
#include <algorithm>
#include <cstdio>

#include <doctest/doctest.h>

#include "runtime/train/report/event_file.hpp"
#include "runtime/train/report/metrics_log.hpp"
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

// By TensorBoard's rule: files in the order of their names; the first SessionLog.START marks a session, every
// later one drops what has its step or more.
std::vector<std::pair<std::uint64_t, int>> shown_by_tensorboard(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::pair<std::uint64_t, int>> points;
  bool in_session = false;
  for (const auto& file : files)
    for (const Json& event : read_events(file)) {
      const auto step = event.value("step", std::uint64_t{0});
      if (event.contains("session") && std::exchange(in_session, true))
        std::erase_if(points, [&](const auto& point) { return point.first >= step; });
      for (const Json& loss : event["scalars"]) points.emplace_back(step, loss.get<int>());
    }
  return points;
}

}  // namespace

TEST_CASE("TensorBoard's file holds a version and scalars with right checksums") {
  const Folder folder;
  auto file = EventFile::create(folder.path, 1000.5, 0);
  REQUIRE(file.has_value());
  const Scalar scalars[] = {{"train/loss", 0.5F}, {"train/accuracy", 0.75F}};
  REQUIRE(file->write(300, 1001.25, scalars).has_value());
  const auto events = read_events(file->path());
  REQUIRE(events.size() == 3);
  CHECK(events[0]["version"] == "brain.Event:2");
  CHECK(events[0]["wall_time"] == 1000.5);
  CHECK(events[1]["session"] == 1);
  CHECK(events[1]["step"] == 0);
  CHECK(events[2]["step"] == 300);
  CHECK(events[2]["scalars"]["train/loss"] == 0.5);
  CHECK(events[2]["scalars"]["train/accuracy"] == 0.75);
  CHECK(file->path().filename().string().starts_with("events.out.tfevents.0000001000."));
}

TEST_CASE("a resumed run tells TensorBoard with which step it goes on") {
  const Folder folder;
  const auto events = read_events(EventFile::create(folder.path, 1000, 450)->path());
  REQUIRE(events.size() == 2);
  CHECK(events[1]["session"] == 1);
  CHECK(events[1]["step"] == 451);
}

TEST_CASE("TensorBoard shows each step once after two crashes, as metrics.jsonl does") {
  const Folder folder;
  // Killed after 150, resumed from 100, killed after 300, resumed from 250: all within one second.
  const std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> runs = {
      {0, {1, 50, 100, 150}}, {100, {150, 200, 250, 300}}, {250, {300, 350}}};
  for (const auto& [resumed_at, steps] : runs) {
    auto file = EventFile::create(folder.path, 1000, resumed_at);
    auto log = MetricsLog::open(folder.path, resumed_at);
    for (const std::uint64_t step : steps) {
      const Scalar loss{"train/loss", static_cast<float>(resumed_at)};
      REQUIRE(file->write(step, 1000, {&loss, 1}).has_value());
      REQUIRE(log->write(Json{{"step", step}, {"loss", resumed_at}}).has_value());
    }
  }
  std::string logged;
  for (const auto& [step, loss] : shown_by_tensorboard(folder.path))
    logged += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, loss);
  CHECK(logged == *read_file(folder.path / "metrics.jsonl"));
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
