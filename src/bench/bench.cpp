#include "src/bench/bench.hpp"

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/version.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json map_or_null(const std::map<std::string, double>& map) {
  return map.empty() ? Json(nullptr) : Json(map);
}

Json to_json(const std::optional<StepSeconds>& steps) {
  if (!steps) return nullptr;
  return {
      {"mean", steps->mean}, {"std", steps->std}, {"p50", steps->p50}, {"p95", steps->p95}, {"n", steps->n}};
}

Json to_json(const Point& point) {
  Json values = Json::object();
  for (const auto& [key, value] : point.values) values[key] = value;
  const Figures& figures = point.figures;
  return {{"id", point.id},
          {"values", std::move(values)},
          {"repeat", point.repeat},
          {"ranks", or_null(point.ranks)},
          {"status", kPointStatuses.name(point.status)},
          {"why", text_or_null(point.why)},
          {"run", text_or_null(point.run)},
          {"rate", or_null(figures.rate)},
          {"step_seconds", to_json(figures.step_seconds)},
          {"parts", map_or_null(figures.parts)},
          {"bytes_per_step", or_null(figures.bytes_per_step)},
          {"max_rss_bytes", or_null(figures.max_rss_bytes)},
          {"gpu_bytes", or_null(figures.gpu_bytes)},
          {"joules", or_null(figures.joules)},
          {"metrics", map_or_null(figures.metrics)},
          {"seconds", or_null(figures.seconds)}};
}

// Unset where the field is null or absent.
template <class T>
Result<std::optional<T>> optional_field(const Json& json, const char* name, const std::string& where) {
  if (!json.contains(name) || json.at(name).is_null()) return std::optional<T>();
  return std::optional<T>(TRY(field<T>(json, name, where)));
}

Result<std::map<std::string, double>> numbers(const Json& json, const char* name, const std::string& where) {
  std::map<std::string, double> out;
  const auto object = TRY(optional_field<Json>(json, name, where));
  if (!object) return out;
  for (const auto& [key, value] : object->items()) out[key] = TRY(field<double>(*object, key, where));
  return out;
}

Result<std::optional<StepSeconds>> steps_of(const Json& json, const std::string& where) {
  const auto object = TRY(optional_field<Json>(json, "step_seconds", where));
  if (!object) return std::optional<StepSeconds>();
  return std::optional(StepSeconds{.mean = TRY(field<double>(*object, "mean", where)),
                                   .std = TRY(field<double>(*object, "std", where)),
                                   .p50 = TRY(field<double>(*object, "p50", where)),
                                   .p95 = TRY(field<double>(*object, "p95", where)),
                                   .n = TRY(field<std::int64_t>(*object, "n", where))});
}

Result<Figures> figures_of(const Json& json, const std::string& where) {
  Figures out;
  out.rate = TRY(optional_field<double>(json, "rate", where));
  out.step_seconds = TRY(steps_of(json, where));
  out.parts = TRY(numbers(json, "parts", where));
  out.bytes_per_step = TRY(optional_field<double>(json, "bytes_per_step", where));
  out.max_rss_bytes = TRY(optional_field<double>(json, "max_rss_bytes", where));
  out.gpu_bytes = TRY(optional_field<double>(json, "gpu_bytes", where));
  out.joules = TRY(optional_field<double>(json, "joules", where));
  out.metrics = TRY(numbers(json, "metrics", where));
  out.seconds = TRY(optional_field<double>(json, "seconds", where));
  return out;
}

Result<Point> point_of(const Json& json, const std::string& where) {
  Point out;
  out.id = TRY(field<std::string>(json, "id", where));
  const Json values = TRY(field<Json>(json, "values", where));
  for (const auto& [key, value] : values.items()) out.values.emplace_back(key, value);
  out.repeat = TRY(field<int>(json, "repeat", where));
  out.ranks = TRY(optional_field<int>(json, "ranks", where));
  const auto name = TRY(field<std::string>(json, "status", where));
  const auto status = kPointStatuses.value(name);
  if (!status) return bad_input(where, fmt::format("point {}: unknown status '{}'", out.id, name));
  out.status = *status;
  out.why = TRY(optional_field<std::string>(json, "why", where)).value_or("");
  out.run = TRY(optional_field<std::string>(json, "run", where)).value_or("");
  out.figures = TRY(figures_of(json, where));
  return out;
}

Result<std::vector<Axis>> axes_of(const Json& json, const std::string& where) {
  std::vector<Axis> out;
  for (const Json& axis : TRY(field<std::vector<Json>>(json, "axes", where)))
    out.push_back(
        {TRY(field<std::string>(axis, "key", where)), TRY(field<std::vector<Json>>(axis, "values", where))});
  return out;
}

}  // namespace

Json to_json(const Bench& bench) {
  Json axes = Json::array(), points = Json::array();
  for (const Axis& axis : bench.axes) axes.push_back({{"key", axis.key}, {"values", axis.values}});
  for (const Point& point : bench.points) points.push_back(to_json(point));
  Json out{{"schema", kSchema},
           {"name", bench.name},
           {"created", bench.created},
           {"dlrun", kVersion},
           {"framework", bench.framework},
           {"mode", kModes.name(bench.mode)},
           {"unit", bench.unit},
           {"axes", std::move(axes)},
           {"machine", {{"cpu", bench.cpu}, {"gpu", bench.gpu}, {"host_count", bench.hosts}}},
           {"points", std::move(points)}};
  if (!bench.tune.empty()) out["tune"] = bench.tune;
  return out;
}

Result<Bench> bench_from_json(const Json& json, const std::string& where) {
  if (const int schema = TRY(field<int>(json, "schema", where)); schema != kSchema)
    return bad_input(where, fmt::format("schema {} is not supported; this dlrun reads {}", schema, kSchema));
  Bench out;
  out.name = TRY(field<std::string>(json, "name", where));
  out.created = TRY(field<std::string>(json, "created", where));
  out.framework = TRY(field<std::string>(json, "framework", where));
  out.unit = TRY(field<std::string>(json, "unit", where));
  const auto mode = TRY(field<std::string>(json, "mode", where));
  if (!kModes.value(mode)) return bad_input(where, fmt::format("unknown mode '{}'", mode));
  out.mode = *kModes.value(mode);
  out.axes = TRY(axes_of(json, where));
  out.tune = TRY(optional_field<std::string>(json, "tune", where)).value_or("");
  const Json machine = TRY(field<Json>(json, "machine", where));
  out.cpu = TRY(field<Json>(machine, "cpu", where));
  out.gpu = TRY(field<Json>(machine, "gpu", where));
  out.hosts = TRY(field<std::size_t>(machine, "host_count", where));
  for (const Json& point : TRY(field<std::vector<Json>>(json, "points", where)))
    out.points.push_back(TRY(point_of(point, where)));
  return out;
}

Result<Bench> read_bench(const fs::path& folder) {
  const fs::path file = folder / "bench.json";
  const std::string text = TRY(read_regular_file(file, kMaxJsonBytes));
  return bench_from_json(TRY(parse_json(text, file.string())), file.string());
}

Result<void> write_bench(const Bench& bench, const fs::path& folder) {
  return replace_file(folder / "bench.json", to_pretty_text(to_json(bench)), Durability::synced);
}

std::string text_of(const Point& point) {
  std::string out;
  for (const auto& [key, value] : point.values)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key,
                       value.is_string() ? value.get<std::string>() : to_text(value));
  if (point.repeat > 0) out += fmt::format(" (repeat {})", point.repeat + 1);
  return out;
}

}  // namespace dlrun::bench
