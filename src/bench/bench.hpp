// Bench: a benchmark of several points, as bench.json in its folder has it: what is varied, and what came of
// each point so far. The file is replaced as a whole after each point, so that a reader and a later start
// find a complete one. What was not measured is unset, never 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/enum_names.hpp"
#include "src/base/json.hpp"

namespace dlrun::bench {

enum class PointStatus { pending, running, done, failed, out_of_memory, timeout, stopped_early };
inline constexpr auto kPointStatuses =
    enum_names<PointStatus>({{PointStatus::pending, "pending"},
                             {PointStatus::running, "running"},
                             {PointStatus::done, "done"},
                             {PointStatus::failed, "failed"},
                             {PointStatus::out_of_memory, "out-of-memory"},
                             {PointStatus::timeout, "timeout"},
                             {PointStatus::stopped_early, "stopped-early"}});

/// Whether the point has been tried to its end.
constexpr bool is_over(PointStatus status) {
  return status != PointStatus::pending && status != PointStatus::running;
}

enum class Mode { rate, metrics };
inline constexpr auto kModes = enum_names<Mode>({{Mode::rate, "rate"}, {Mode::metrics, "metrics"}});

// The seconds of a step.
struct StepSeconds {
  double mean = 0, std = 0, p50 = 0, p95 = 0;
  std::int64_t n = 0;
};

struct Figures {
  std::optional<double> rate;  // of all ranks together
  std::optional<StepSeconds> step_seconds;
  std::map<std::string, double> parts;  // seconds of a step: compute, exchange, input
  std::optional<double> bytes_per_step, max_rss_bytes, gpu_bytes, joules, seconds;
  std::map<std::string, double> metrics;  // final ones, of a training
};

struct Point {
  std::string id;                                         // "0003": also its folder below points/
  std::vector<std::pair<std::string, Json>> values = {};  // by axis
  int repeat = 0;                                         // from 0
  std::optional<int> ranks = {};
  PointStatus status = PointStatus::pending;
  std::string why = {};  // it is not done
  std::string run = {};  // run directory, relative to the bench's folder; empty: nothing was started
  Figures figures = {};
};

struct Axis {
  std::string key;
  std::vector<Json> values;
};

struct Bench {
  std::string name = {}, created = {}, framework = {}, unit = {};
  Mode mode = Mode::rate;
  std::vector<Axis> axes = {};
  Json cpu = {}, gpu = {};  // models; null: not known yet
  std::size_t hosts = 0;
  std::string tune = {};  // what is tuned; empty: it is a benchmark
  std::vector<Point> points = {};
};

Json to_json(const Bench& bench);
/// `where` names the file in errors.
Result<Bench> bench_from_json(const Json& json, const std::string& where);

Result<Bench> read_bench(const std::filesystem::path& folder);
Result<void> write_bench(const Bench& bench, const std::filesystem::path& folder);

/// "nodes=2 batch=64", and the repeat where there are several.
std::string text_of(const Point& point);

}  // namespace dlrun::bench
