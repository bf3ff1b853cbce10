#include "src/plan/bench_spec.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

constexpr std::int64_t kMaxCount = 1'000'000'000;

Result<void> check_scalar(const Node& node, const std::string& key) {
  if (node.kind == yaml::Kind::scalar) return {};
  return yaml::error_at(node, fmt::format("a value of the axis '{}' must be a number or a text", key),
                        "write it as nodes: [1, 2, 4]");
}

Result<BenchAxis> read_axis(const std::string& key, const Node& node, std::string source) {
  BenchAxis out{.key = key, .values = {}, .source = std::move(source)};
  if (node.kind == yaml::Kind::scalar) out.values = {node};
  if (node.kind == yaml::Kind::list) out.values = node.items;
  if (node.kind == yaml::Kind::map)
    return yaml::error_at(node, fmt::format("the axis '{}' must be a list of values", key),
                          "write a path with dots: train.optimizer.lr: [0.1, 0.2]");
  if (out.values.empty())
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("the axis '{}' has no values", key),
                      .where = out.source,
                      .hint = "write it as nodes: [1, 2, 4]",
                      .also = {}});
  for (const Node& value : out.values) TRY(check_scalar(value, key));
  return out;
}

std::string key_source(const Node& map, std::size_t index) {
  return index < map.key_sources.size() ? map.key_sources[index] : map.source;
}

Result<std::vector<BenchAxis>> read_axes(const Node& node) {
  std::vector<BenchAxis> out;
  if (node.kind != yaml::Kind::map)
    return yaml::error_at(node, "bench.axes must be a map of axes", "write it as axes: {nodes: [1, 2, 4]}");
  for (std::size_t i = 0; i < node.entries.size(); ++i)
    out.push_back(TRY(read_axis(node.entries[i].first, node.entries[i].second, key_source(node, i))));
  return out;
}

Result<std::vector<BenchPoint>> read_points(const Node& node) {
  std::vector<BenchPoint> out;
  if (node.kind != yaml::Kind::list)
    return yaml::error_at(node, "bench.points must be a list of points",
                          "write it as points: [{nodes: 1, batch: 64}, {nodes: 2, batch: 32}]");
  for (const Node& item : node.items) {
    if (item.kind != yaml::Kind::map || item.entries.empty())
      return yaml::error_at(item, "a point of bench.points must be a map of keys and values",
                            "write it as {nodes: 1, batch: 64}");
    BenchPoint point;
    for (std::size_t i = 0; i < item.entries.size(); ++i) {
      const auto& [key, value] = item.entries[i];
      TRY(check_scalar(value, key));
      point.push_back({key, value, key_source(item, i)});
    }
    out.push_back(std::move(point));
  }
  return out;
}

Result<std::optional<std::uint64_t>> count_of(Fields& fields, std::string_view key, std::int64_t low) {
  if (!fields.has(key)) return std::optional<std::uint64_t>();
  return std::optional(static_cast<std::uint64_t>(TRY(fields.integer_or(key, low, low, kMaxCount))));
}

// Which two of these keys cannot stand together.
Result<void> check_exclusive(Fields& fields) {
  static constexpr std::array<std::array<const char*, 2>, 3> pairs{
      {{"axes", "points"}, {"epochs", "steps"}, {"epochs", "rate"}}};
  for (const auto& [one, other] : pairs)
    if (fields.has(one) && fields.has(other))
      return yaml::error_at(*fields.find(other),
                            fmt::format("bench.{} and bench.{} exclude each other", one, other),
                            "keep one of the two");
  return {};
}

Result<void> read_goal(Fields& fields, BenchSpec& out) {
  const Node* const node = fields.find("stop-early");
  if (node == nullptr) return {};
  auto goal = bench_goal_of(TRY(fields.text_or("stop-early", "")));
  if (!goal) return yaml::error_at(*node, "bench.stop-early: " + goal.error().what, goal.error().hint);
  if (!out.epochs)
    return yaml::error_at(*node, "bench.stop-early is for trainings, and bench.epochs is not set",
                          "add --epochs N, the length of a training that is not stopped");
  out.stop_early = std::move(*goal);
  return {};
}

Result<void> read_measuring(Fields& fields, BenchSpec& out) {
  out.repeats = static_cast<int>(TRY(fields.integer_or("repeats", 1, 1, kMaxBenchPoints)));
  out.warmup = TRY(count_of(fields, "warmup", 0));
  out.steps = TRY(count_of(fields, "steps", 1));
  out.epochs = TRY(count_of(fields, "epochs", 1));
  TRY(read_goal(fields, out));
  out.limit = TRY(fields.duration_or("limit", out.limit));
  if (fields.has("time")) out.time = TRY(fields.duration_or("time", Seconds(0)));
  out.rate = TRY(fields.text_or("rate", ""));
  if (const Node* rate = fields.find("rate")) out.rate_source = rate->source;
  out.unit = TRY(fields.text_or("unit", ""));
  if (const Node* synthetic = fields.find("synthetic")) out.synthetic = *synthetic;
  if (const auto at_once = TRY(count_of(fields, "concurrent", 1)))
    out.concurrent = static_cast<int>(*at_once);
  for (const char* key : {"limit", "time"})
    if (const Node* node = fields.find(key);
        node != nullptr && TRY(yaml::as_duration(*node, key)).count() <= 0)
      return yaml::error_at(*node, fmt::format("bench.{} must be longer than 0s", key));
  return {};
}

Node section(std::string source) {
  Node out;
  out.kind = yaml::Kind::map;
  out.source = std::move(source);
  return out;
}

Node list_of(const std::vector<Node>& values, const std::string& source) {
  Node out;
  out.kind = yaml::Kind::list;
  out.items = values;
  out.source = source;
  return out;
}

void set_measuring(const BenchSpec& spec, Node& out) {
  const auto set = [&](const char* key, const std::string& value) {
    out.set(key, yaml::scalar(value, spec.source));
  };
  set("repeats", std::to_string(spec.repeats));
  if (spec.warmup) set("warmup", std::to_string(*spec.warmup));
  if (spec.epochs) set("epochs", std::to_string(*spec.epochs));
  if (spec.stop_early) set("stop-early", text_of(*spec.stop_early));
  if (spec.steps) set("steps", std::to_string(*spec.steps));
  set("limit", fmt::format("{}s", spec.limit.count()));
  if (spec.time) set("time", fmt::format("{}s", spec.time->count()));
  if (!spec.rate.empty()) set("rate", spec.rate);
  if (!spec.unit.empty()) set("unit", spec.unit);
  if (spec.concurrent) set("concurrent", std::to_string(*spec.concurrent));
  if (spec.synthetic) out.set("synthetic", *spec.synthetic);
}

Result<void> check_twice(const std::vector<BenchAxis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t other = 0; other < i; ++other)
      if (axes[i].key == axes[other].key)
        return bad_input(axes[i].source, fmt::format("the axis '{}' is there twice", axes[i].key));
  return {};
}

// Equal ones would be measured and counted as one point.
Result<void> check_values_differ(const BenchAxis& axis) {
  std::vector<Json> values;
  for (const Node& value : axis.values) values.push_back(yaml::to_json(value));
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice == values.end()) return {};
  return bad_input(axis.source,
                   fmt::format("the axis '{}' has the value {} twice", axis.key, short_text(*twice)),
                   "to measure each point more than once, use --repeats, or bench.repeats in the job file");
}

}  // namespace

Result<std::optional<BenchSpec>> read_bench(Fields& root) {
  const Node* node = root.find("bench");
  if (node == nullptr) return std::optional<BenchSpec>();
  Fields fields = TRY(Fields::of(*node, "bench"));
  BenchSpec out;
  out.source = node->source;
  if (const Node* axes = fields.find("axes")) out.axes = TRY(read_axes(*axes));
  if (const Node* points = fields.find("points")) out.points = TRY(read_points(*points));
  TRY(read_measuring(fields, out));
  TRY(fields.finish());
  TRY(check_exclusive(fields));
  return std::optional(std::move(out));
}

Result<BenchGoal> bench_goal_of(const std::string& text) {
  using Better = BenchGoal::Better;
  const auto named = [&](std::string_view name) { return text.find(name) != std::string::npos; };
  for (const auto& [prefix, better] : {std::pair("max:", Better::higher), std::pair("min:", Better::lower)})
    if (text.starts_with(prefix) && text.size() > 4) return BenchGoal{text.substr(4), better};
  if (text.find(':') == std::string::npos && named("accuracy") != named("loss"))
    return BenchGoal{text, named("loss") ? Better::lower : Better::higher};
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("'{}' does not say whether more or less of it is better", text),
                    .where = {},
                    .hint = "write max:NAME or min:NAME, as max:test_accuracy",
                    .also = {}});
}

std::string text_of(const BenchGoal& goal) {
  return (goal.better == BenchGoal::Better::higher ? "max:" : "min:") + goal.metric;
}

Result<BenchAxis> bench_axis_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string source = "--axis " + text.substr(0, equals);
  if (equals == std::string::npos || equals == 0)
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("--axis {}: no values", text),
                      .where = {},
                      .hint = "write it as --axis nodes=1,2,4",
                      .also = {}});
  Node values = TRY(yaml::parse("[" + text.substr(equals + 1) + "]", source));
  values.source = source;
  for (Node& value : values.items) value.source = source;
  auto out = read_axis(text.substr(0, equals), values, source);
  if (out) return out;
  out.error().kind = ErrorKind::usage;
  out.error().hint = "write it as --axis nodes=1,2,4";
  return out;
}

Result<void> set_axis(BenchSpec& spec, BenchAxis axis) {
  if (!spec.points.empty())
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{}: the points are a list, bench.points", axis.source),
                      .where = {},
                      .hint = "write bench.axes in place of bench.points",
                      .also = {}});
  const auto same = std::find_if(spec.axes.begin(), spec.axes.end(),
                                 [&](const BenchAxis& one) { return one.key == axis.key; });
  if (same == spec.axes.end())
    spec.axes.push_back(std::move(axis));
  else
    *same = std::move(axis);
  return {};
}

Result<std::uint64_t> count_points(const BenchSpec& spec) {
  TRY(check_twice(spec.axes));
  if (spec.axes.empty() && spec.points.empty())
    return bad_input(spec.source.starts_with("--") ? std::string() : spec.source,  // not the last flag
                     "bench has no points: neither axes nor points are given",
                     "add --axis nodes=1,2,4, or bench: {axes: {nodes: [1, 2, 4]}} to the job file");
  // In floating point: 40 axes of 10 values are more than an integer holds.
  double all = spec.repeats;
  std::string product;
  for (const BenchAxis& axis : spec.axes) {
    all *= static_cast<double>(axis.values.size());
    product += fmt::format("{}{} of {}", product.empty() ? "" : " x ", axis.values.size(), axis.key);
  }
  if (spec.axes.empty()) all *= static_cast<double>(spec.points.size());
  if (all <= static_cast<double>(kMaxBenchPoints)) {
    for (const BenchAxis& axis : spec.axes) TRY(check_values_differ(axis));
    return static_cast<std::uint64_t>(all);
  }
  if (spec.repeats > 1) product += fmt::format(" x {} repeats", spec.repeats);
  return bad_input(spec.axes.empty() ? spec.source : spec.axes.back().source,
                   fmt::format("bench has {:.0f} points ({}); at most {} are measured", all,
                               product.empty() ? "bench.points" : product, kMaxBenchPoints),
                   "give fewer values, or a list: bench.points");
}

std::vector<BenchPoint> points_of(const BenchSpec& spec) {
  if (!spec.points.empty()) return spec.points;
  std::vector<BenchPoint> out{{}};
  for (const BenchAxis& axis : spec.axes) {
    std::vector<BenchPoint> longer;
    for (const BenchPoint& point : out)
      for (const Node& value : axis.values) {
        longer.push_back(point);
        longer.back().push_back({axis.key, value, axis.source});
      }
    out = std::move(longer);
  }
  return out;
}

yaml::Node to_node(const BenchSpec& spec) {
  Node out = section(spec.source);
  Node axes = section(spec.source);
  for (const BenchAxis& axis : spec.axes) axes.set(axis.key, list_of(axis.values, axis.source));
  if (!spec.axes.empty()) out.set("axes", std::move(axes));
  std::vector<Node> points;
  for (const BenchPoint& point : spec.points) {
    points.push_back(section(spec.source));
    for (const BenchValue& value : point) points.back().set(value.key, value.value);
  }
  if (!points.empty()) out.set("points", list_of(points, spec.source));
  set_measuring(spec, out);
  return out;
}

}  // namespace dlrun::plan
