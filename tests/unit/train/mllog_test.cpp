// The lines of MLPerf's log: their form and their order.
#include "runtime/train/report/mllog.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

Json parsed(const std::string& line) {
  REQUIRE(line.starts_with(":::MLLOG {"));
  return parse_json(line.substr(9), "line").value();
}

void append(MlLog::Lines& all, const MlLog::Lines& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("a run of two epochs from its initialization to its end") {
  double now = 1000.5;
  MlLog log([&] { return now += 1; });
  MlLog::Lines lines;
  append(lines,
         log.begin({.benchmark = "resnet50", .optimizer = "lars", .global_batch = 256, .target = 0.7}, 990));
  const std::size_t before = lines.size();
  for (const std::uint64_t epoch : {1, 2}) {
    append(lines, log.train(epoch));
    append(lines, log.evaluate(epoch));
    append(lines, log.evaluated(epoch, 0.35 * static_cast<double>(epoch)));
  }
  append(lines, log.end(MlLog::Status::success, 2));
  CHECK(log.end(MlLog::Status::aborted, 2).empty());  // once
  CHECK(parsed(lines[0])["key"] == "init_start");
  CHECK(parsed(lines[0])["time_ms"] == 990000);
  CHECK(parsed(lines[3])["value"] != Json("resnet50"));
  CHECK(parsed(lines[1]) == Json{{"namespace", ""},
                                 {"time_ms", 1001500},
                                 {"event_type", "POINT_IN_TIME"},
                                 {"key", "submission_benchmark"},
                                 {"value", "resnet50"},
                                 {"metadata", Json::object()}});
  std::vector<std::string> keys;
  double last = 0;
  for (std::size_t i = before; i < lines.size(); ++i) {
    const Json line = parsed(lines[i]);
    keys.push_back(line["key"]);
    CHECK(line["time_ms"].get<double>() > last);
    last = line["time_ms"].get<double>();
  }
  CHECK(keys == std::vector<std::string>{"init_stop", "run_start", "epoch_start", "epoch_stop", "eval_start",
                                         "eval_accuracy", "eval_stop", "epoch_start", "epoch_stop",
                                         "eval_start", "eval_accuracy", "eval_stop", "run_stop"});
  CHECK(parsed(lines.back())["metadata"] == Json{{"epoch_num", 2}, {"status", "success"}});
}

TEST_CASE("a run that only evaluates starts no epoch, and one that was not begun does not end") {
  MlLog log([] { return 1.0; });
  CHECK(log.end(MlLog::Status::aborted, 0).empty());
  CHECK(log.evaluate(1).size() == 1);
  CHECK(log.evaluated(1, std::nullopt).size() == 1);
}
