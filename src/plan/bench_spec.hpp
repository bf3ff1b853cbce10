// BenchSpec: the `bench` section of a job file: which points `dlrun bench` measures, and how. Points are a
// grid of axes or a list. It knows neither which keys a job has nor how long a point takes: it refuses what
// is no list of values, an empty one, a key that comes twice, and more points than anybody would wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/fields.hpp"

namespace dlrun::plan {

inline constexpr std::uint64_t kMaxBenchPoints = 10'000;

// A key of the job, or a short name for one, and the values that it takes.
struct BenchAxis {
  std::string key;
  std::vector<yaml::Node> values;  // scalars
  std::string source;              // where the key stands
};

// One value of one key: a coordinate of a point.
struct BenchValue {
  std::string key;
  yaml::Node value;
  std::string source;
};
using BenchPoint = std::vector<BenchValue>;

// Which metric of trainings is compared while they run.
struct BenchGoal {
  enum class Better { higher, lower };
  std::string metric;
  Better better = Better::higher;
};

struct BenchSpec {
  std::vector<BenchAxis> axes;     // a grid
  std::vector<BenchPoint> points;  // or a list
  int repeats = 1;
  std::optional<std::uint64_t> warmup;  // steps, or lines with `rate`; unset: 10 steps, 0 lines
  std::optional<std::uint64_t> steps;   // that are timed; unset: 100
  std::optional<std::uint64_t> epochs;  // a training instead, of which the final metrics count
  std::optional<BenchGoal> stop_early;  // trainings that are worse than the better half of others
  Seconds limit{1800};                  // of a point
  std::optional<Seconds> time;          // a program of the user's is stopped then, and was measured
  std::string rate, unit;               // expression whose group is the rate, in the lines of a rank
  std::string rate_source;              // where it stands
  std::optional<int> concurrent;        // points at once; unset: as many as fit
  std::optional<yaml::Node> synthetic;  // the section train.data of the value `synthetic` of the axis `data`
  std::string source;                   // where the section stands
};

/// Reads the section `bench` of the job file; unset where there is none.
Result<std::optional<BenchSpec>> read_bench(yaml::Fields& root);

/// "max:accuracy", "min:loss", or the name alone where it says which is better. The Error has no place.
Result<BenchGoal> bench_goal_of(const std::string& text);
std::string text_of(const BenchGoal& goal);

/// An axis of the command line, "nodes=1,2,4": values are separated by commas, as in a list of YAML.
Result<BenchAxis> bench_axis_of(const std::string& text);

/// Adds an axis in place of one with the same key. An Error where the points are a list.
Result<void> set_axis(BenchSpec& spec, BenchAxis axis);

/// How many points there are, each counted as often as it is repeated; an Error at the section's place where
/// there is none, or more than kMaxBenchPoints, or a value twice in an axis.
Result<std::uint64_t> count_points(const BenchSpec& spec);

/// All points, the last axis changing first. Only after count_points().
std::vector<BenchPoint> points_of(const BenchSpec& spec);

/// The section as it would stand in a job file.
yaml::Node to_node(const BenchSpec& spec);

}  // namespace dlrun::plan
