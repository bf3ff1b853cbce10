#include "src/bench/results/bench.hpp"

#include <cmath>

#include "src/base/enum_names.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/bench/results/max_rate.hpp"

namespace dlrun::bench::results {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBytes = std::size_t{64} << 20, kMaxAxes = 16;
constexpr int kSchema = 1, kMaxDepth = 16;
constexpr std::string_view kHint = "dlrun bench writes bench.json; give the folder of another one";

constexpr auto kStatusNames = enum_names<Status>({{Status::done, "done"},
                                                  {Status::failed, "failed"},
                                                  {Status::out_of_memory, "out-of-memory"},
                                                  {Status::timeout, "timeout"},
                                                  {Status::stopped_early, "stopped-early"},
                                                  {Status::pending, "pending"},
                                                  {Status::running, "running"}});
constexpr auto kModeNames = enum_names<Mode>({{Mode::rate, "rate"}, {Mode::metrics, "metrics"}});

tl::unexpected<Error> refused(const std::string& where, std::string what) {
  return bad_input(where, std::move(what), std::string(kHint));
}

// A member that may be absent or null.
const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

Result<std::optional<double>> number_or_unset(const Json& object, const char* name,
                                              const std::string& where) {
  const Json& value = member(object, name);
  if (value.is_null()) return std::nullopt;
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
    return refused(where, fmt::format("field '{}' is not a number from 0 on: {}", name, short_text(value)));
  return value.get<double>();
}

Result<std::optional<double>> rate_or_unset(const Json& point, const std::string& where) {
  const auto rate = TRY(number_or_unset(point, "rate", where));
  if (rate && !is_rate(*rate))
    return refused(where, fmt::format("field 'rate' is larger than {:g}: {:g}", kMaxRate, *rate));
  return rate;
}

Result<std::string> text_or_empty(const Json& object, const char* name, const std::string& where) {
  const Json& value = member(object, name);
  if (value.is_null()) return std::string();
  if (!value.is_string())
    return refused(where, fmt::format("field '{}' is not a text: {}", name, short_text(value)));
  return value.get<std::string>();
}

Result<std::map<std::string, double>> numbers_by_name(const Json& object, const char* name,
                                                      const std::string& where) {
  const Json& values = member(object, name);
  std::map<std::string, double> out;
  if (values.is_null()) return out;
  if (!values.is_object()) return refused(where, fmt::format("field '{}' is not an object", name));
  for (const auto& [key, value] : values.items()) {
    if (value.is_null()) continue;
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return refused(where, fmt::format("{}.{} is not a number: {}", name, key, short_text(value)));
    out[key] = value.get<double>();
  }
  return out;
}

template <class Names>
auto named(const Names& names, const Json& object, const char* name, const std::string& where)
    -> Result<typename std::decay_t<decltype(names.rows[0].first)>> {
  const std::string text = TRY(text_or_empty(object, name, where));
  const auto value = names.value(text);
  if (!value)
    return refused(where, fmt::format("field '{}' has the unknown value '{}'; expected {}", name, text,
                                      join(names.names(), ", ")));
  return *value;
}

Result<int> count_or_zero(const Json& object, const char* name, const std::string& where) {
  if (member(object, name).is_null()) return 0;
  auto value = field<int>(object, name, where);
  if (!value || *value < 0)
    return refused(where,
                   value ? fmt::format("field '{}' is negative: {}", name, *value) : value.error().what);
  return *value;
}

bool is_scalar(const Json& value) {
  return value.is_string() || value.is_boolean() || (value.is_number() && std::isfinite(value.get<double>()));
}

Result<Axis> parse_axis(const Json& json, const std::string& where) {
  if (!json.is_object()) return refused(where, "an axis is not an object");
  Axis axis{.key = TRY(text_or_empty(json, "key", where)), .values = {}};
  const Json& values = member(json, "values");
  if (axis.key.empty() || !values.is_array())
    return refused(where, "an axis needs a key and a list of values");
  for (const Json& value : values) {
    if (!is_scalar(value)) return refused(where, fmt::format("a value is {}", short_text(value)));
    axis.values.push_back(value);
  }
  return axis;
}

Result<std::optional<StepSeconds>> parse_step(const Json& point, const std::string& where) {
  const Json& json = member(point, "step_seconds");
  if (json.is_null()) return std::nullopt;
  if (!json.is_object()) return refused(where, "field 'step_seconds' is not an object");
  const std::string place = where + ".step_seconds";
  const auto mean = TRY(number_or_unset(json, "mean", place));
  if (!mean) return refused(place, "field 'mean' is missing");
  return StepSeconds{
      .mean = *mean,
      .std = TRY(number_or_unset(json, "std", place)).value_or(0),
      .p50 = TRY(number_or_unset(json, "p50", place)).value_or(*mean),
      .p95 = TRY(number_or_unset(json, "p95", place)).value_or(*mean),
      .n = static_cast<std::int64_t>(std::min(TRY(number_or_unset(json, "n", place)).value_or(0), 1e15))};
}

Result<std::vector<Json>> parse_values(const Json& point, const std::vector<Axis>& axes,
                                       const std::string& where) {
  const Json& values = member(point, "values");
  if (!values.is_object()) return refused(where, "field 'values' is not an object");
  std::vector<Json> out;
  for (const Axis& axis : axes) {
    const Json value = values.value(axis.key, Json());  // of a list of points, not each has every key
    if (!value.is_null() && !is_scalar(value))
      return refused(where, fmt::format("the value of '{}' is {}", axis.key, short_text(value)));
    out.push_back(value);
  }
  return out;
}

Result<Point> parse_point(const Json& json, const std::vector<Axis>& axes, const std::string& where) {
  if (!json.is_object()) return refused(where, "a point is not an object");
  Point out;
  out.values = TRY(parse_values(json, axes, where));
  out.id = TRY(text_or_empty(json, "id", where));
  out.repeat = TRY(count_or_zero(json, "repeat", where));
  out.ranks = TRY(count_or_zero(json, "ranks", where));
  out.status = TRY(named(kStatusNames, json, "status", where));
  out.why = TRY(text_or_empty(json, "why", where));
  out.run = TRY(text_or_empty(json, "run", where));
  out.rate = TRY(rate_or_unset(json, where));
  out.step = TRY(parse_step(json, where));
  out.parts = TRY(numbers_by_name(json, "parts", where));
  out.bytes_per_step = TRY(number_or_unset(json, "bytes_per_step", where));
  out.max_rss_bytes = TRY(number_or_unset(json, "max_rss_bytes", where));
  out.gpu_bytes = TRY(number_or_unset(json, "gpu_bytes", where));
  out.joules = TRY(number_or_unset(json, "joules", where));
  out.seconds = TRY(number_or_unset(json, "seconds", where));
  out.metrics = TRY(numbers_by_name(json, "metrics", where));
  return out;
}

// Each of a list, with its number in the place.
template <class Item, class Parse>
Result<std::vector<Item>> parse_list(const Json& json, const char* name, const std::string& where,
                                     Parse parse) {
  const Json& list = member(json, name);
  if (!list.is_array()) return refused(where, fmt::format("field '{}' is not a list", name));
  std::vector<Item> out;
  for (const Json& each : list)
    out.push_back(TRY(parse(each, fmt::format("{}: {}[{}]", where, name, out.size()))));
  return out;
}

}  // namespace

std::string_view name_of(Status status) {
  return kStatusNames.name(status);
}

Result<Bench> parse_bench(const Json& json, const std::string& where) {
  if (!json.is_object()) return refused(where, "not a JSON object");
  if (const Json& schema = member(json, "schema"); schema != Json(kSchema))
    return refused(where,
                   fmt::format("schema {} is not supported; expected {}", short_text(schema), kSchema));
  Bench out;
  out.name = TRY(text_or_empty(json, "name", where));
  out.created = TRY(text_or_empty(json, "created", where));
  out.version = TRY(text_or_empty(json, "dlrun", where));
  out.framework = TRY(text_or_empty(json, "framework", where));
  out.unit = TRY(text_or_empty(json, "unit", where));
  out.mode = TRY(named(kModeNames, json, "mode", where));
  out.machine = member(json, "machine");
  out.axes = TRY(parse_list<Axis>(json, "axes", where, parse_axis));
  if (out.axes.size() > kMaxAxes)
    return refused(where, fmt::format("{} axes, more than the maximum of {}", out.axes.size(), kMaxAxes));
  out.points = TRY(parse_list<Point>(json, "points", where, [&](const Json& each, const std::string& place) {
    return parse_point(each, out.axes, place);
  }));
  return out;
}

Result<Bench> read_bench(const fs::path& path) {
  std::error_code problem;
  const fs::path file = fs::is_directory(path, problem) ? path / "bench.json" : path;
  auto text = read_regular_file(file, kMaxBytes);
  if (!text) {
    if (text.error().hint.empty()) text.error().hint = kHint;
    return fail(std::move(text).error());
  }
  auto json = parse_json(*text, file.string(), kMaxDepth);
  if (!json) {
    if (json.error().hint.empty()) json.error().hint = kHint;
    return fail(std::move(json).error());
  }
  return parse_bench(*json, file.string());
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

std::string_view last_name(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

}  // namespace dlrun::bench::results
