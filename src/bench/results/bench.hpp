// Bench: what `dlrun bench` measured, as bench.json has it. A point is one run with one value of each axis;
// the same values with another repeat are another point. The reader is strict: it refuses a file in which a
// value has another type, is negative or is missing where a table needs it, and names the file and the place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/result.hpp"

namespace dlrun::bench::results {

enum class Status { done, failed, out_of_memory, timeout, stopped_early, pending, running };
std::string_view name_of(Status status);

enum class Mode { rate, metrics };

struct Axis {
  std::string key;           // "nodes", "train.batch"
  std::vector<Json> values;  // numbers, texts or booleans
};

struct StepSeconds {
  double mean = 0, std = 0, p50 = 0, p95 = 0;
  std::int64_t n = 0;
};

struct Point {
  std::string id;
  std::vector<Json> values;   // of the axes, in their order; null: it has none
  int repeat = 0, ranks = 0;  // 0 ranks: not planned yet
  Status status = Status::pending;
  std::string why, run;
  std::optional<double> rate;
  std::optional<StepSeconds> step;
  std::map<std::string, double> parts;  // seconds per step
  std::optional<double> bytes_per_step, max_rss_bytes, gpu_bytes, joules, seconds;
  std::map<std::string, double> metrics;
};

struct Bench {
  std::string name, created, version, framework, unit;
  Mode mode = Mode::rate;
  std::vector<Axis> axes;
  Json machine;
  std::vector<Point> points;
};

/// `where` is the file's name.
Result<Bench> parse_bench(const Json& json, const std::string& where);
/// A bench.json, or a folder that has one.
Result<Bench> read_bench(const std::filesystem::path& path);

/// A value of an axis as people read it: a text without its quotes.
std::string value_text(const Json& value);
/// "batch" of "train.batch".
std::string_view last_name(std::string_view key);

}  // namespace dlrun::bench::results
