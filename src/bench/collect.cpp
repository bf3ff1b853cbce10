#include "src/bench/collect.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/utc.hpp"
#include "src/bench/epoch_reader.hpp"
#include "src/bench/rate_lines.hpp"
#include "src/bench/results/max_rate.hpp"
#include "src/report/rank_logs.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxWhy = 300;
constexpr std::size_t kMaxOutput = 1 << 20;

// A number at a path of a record, as "result/step_ms/median".
std::optional<double> number_at(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (const std::string& name : split(path, '/')) {
    if (!at->is_object() || !at->contains(name)) return std::nullopt;
    at = &(*at)[name];
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

std::string text_at(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) && json[name].is_string() ? json[name].get<std::string>()
                                                                           : "";
}

const Json& last_attempt(const Json& record) {
  static const Json none;
  const auto found = record.find("attempts");
  return found == record.end() || !found->is_array() || found->empty() ? none : found->back();
}

std::string one_line(const std::string& text) {
  const std::string first = text.substr(0, text.find('\n'));
  return first.size() <= kMaxWhy ? first : first.substr(0, kMaxWhy) + "...";
}

// What programs, the kernel, CUDA and dlrun-train say where memory is exhausted.
bool says_out_of_memory(const std::string& text) {
  static constexpr std::array marks{"out of memory",         "outofmemory", "cannot allocate memory",
                                    "can't allocate memory", "bad_alloc",   "memoryerror",
                                    "resource_exhausted",    "oom-kill",    "the gpu has no room for",
                                    "no memory left"};
  const std::string lowered = lower(text);
  return std::any_of(marks.begin(), marks.end(),
                     [&](const char* mark) { return lowered.find(mark) != std::string::npos; });
}

bool ran_out_of_memory(const Json& record) {
  const Json& attempt = last_attempt(record);
  std::string told = text_at(record, "reason");
  if (attempt.is_object() && attempt.contains("first_failure")) told += to_text(attempt["first_failure"]);
  return says_out_of_memory(told);
}

// The last error that dlrun printed, where it came to no record.
std::string error_in_output(const fs::path& file) {
  static constexpr std::string_view kMark = "dlrun: error: ";
  const auto text = read_regular_file(file, kMaxOutput);
  if (!text) return "";
  const std::size_t at = text->rfind(kMark);
  return at == std::string::npos ? "" : one_line(text->substr(at + kMark.size()));
}

std::optional<double> seconds_of(const Json& record) {
  const auto began = parse_utc(text_at(record, "began")), ended = parse_utc(text_at(record, "ended"));
  if (!began || !ended) return std::nullopt;
  return Seconds(*ended - *began).count();
}

// The words that programs use for their rate, and its unit.
struct RateName {
  const char *name, *unit;
};
constexpr RateName kRateNames[] = {{"images_per_s", "images/s"},
                                   {"samples_per_s", "samples/s"},
                                   {"tokens_per_s", "tokens/s"},
                                   {"steps_per_s", "steps/s"},
                                   {"rate", "1/s"}};

struct Rate {
  double value = 0;
  std::string unit;
};

// By the program itself: its result, else its last report, else the steps that it reported.
std::optional<Rate> reported_rate(const Json& record) {
  for (const char* const part : {"result", "last_progress"})
    for (const RateName& row : kRateNames)
      if (const auto value = number_at(record, fmt::format("{}/{}", part, row.name)))
        return Rate{*value, row.unit};
  const auto step = number_at(last_attempt(record), "step_timing/seconds_per_step");
  if (step && *step > 0) return Rate{1 / *step, "steps/s"};
  return std::nullopt;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The lines of the first rank that has any, without those of the warm-up.
Result<std::vector<double>> printed_rates(const plan::BenchSpec& spec, const fs::path& run) {
  const RatePattern pattern = TRY(RatePattern::of(spec.rate, spec.rate_source));
  const auto folder = TRY(report::read_run_folder(run));
  for (const report::RankLog& log : TRY(report::logs_of(folder, {}))) {
    const auto text = read_regular_file(log.file);
    if (!text) continue;  // a rank that printed nothing
    std::vector<double> rates = TRY(pattern.rates_in(*text));
    if (rates.empty()) continue;
    const std::uint64_t warmup = spec.warmup.value_or(0);
    if (rates.size() <= warmup)
      return bad_input(spec.rate_source,
                       fmt::format("bench.rate matches {} lines of rank {}, and {} are warm-up", rates.size(),
                                   log.rank, warmup),
                       "let the program run longer, or set bench.warmup");
    rates.erase(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(warmup));
    if (spec.steps && rates.size() > *spec.steps) rates.resize(*spec.steps);
    return rates;
  }
  return bad_input(spec.rate_source, "no line of any rank matches bench.rate",
                   "dlrun logs shows what the ranks printed");
}

// Each of them: a mean could hide one.
Result<void> check_rate(double rate, const std::string& where) {
  if (results::is_rate(rate)) return {};
  return bad_input(where,
                   fmt::format("{:g} is no rate: expected a number from 0 to {:g}", rate, results::kMaxRate));
}

Result<Rate> measured_rate(const Json& record, const plan::BenchSpec& spec, const fs::path& run) {
  if (!spec.rate.empty()) {
    const std::vector<double> rates = TRY(printed_rates(spec, run));
    for (const double rate : rates) TRY(check_rate(rate, spec.rate_source));
    return Rate{mean_of(rates), "1/s"};
  }
  if (const auto rate = reported_rate(record)) {
    TRY(check_rate(rate->value, {}));
    return *rate;
  }
  return fail(Error{.kind = ErrorKind::input,
                    .what = "no rate was measured: the program reported neither a rate nor steps",
                    .where = {},
                    .hint = "set bench.rate to a regular expression for it",
                    .also = {}});
}

// As the builtin trainer's benchmark tells them.
void take_step_times(const Json& result, Figures& figures) {
  const auto mean = number_at(result, "step_ms/mean"), std = number_at(result, "step_ms/std"),
             p50 = number_at(result, "step_ms_median"), p95 = number_at(result, "step_ms/p95"),
             steps = number_at(result, "steps");
  if (mean && std && p50 && p95 && steps)
    figures.step_seconds =
        StepSeconds{*mean / 1e3, *std / 1e3, *p50 / 1e3, *p95 / 1e3, static_cast<std::int64_t>(*steps)};
  static constexpr std::pair<const char*, const char*> kParts[] = {{"compute", "bound/compute_ms"},
                                                                   {"exchange", "bound/communication_ms"},
                                                                   {"input", "bound/input_ms"},
                                                                   {"exposed", "bound/exposed_ms"},
                                                                   {"stragglers", "bound/stragglers_ms"}};
  for (const auto& [name, path] : kParts)
    if (const auto value = number_at(result, path)) figures.parts[name] = *value / 1e3;
  figures.bytes_per_step = number_at(result, "bound/gradient_bytes");
  if (const auto peak = number_at(result, "memory_mib/peak_of_rank"))
    figures.max_rss_bytes = *peak * (1 << 20);
}

void take_machine(const Json& record, Figures& figures, Bench& bench) {
  // Of the first kind of nodes: a benchmark is of one kind.
  const Json provenance = record.value("provenance", Json::object());
  const Json nodes = provenance.is_object() ? provenance.value("nodes", Json()) : Json();
  const Json sources =
      nodes.is_array() && !nodes.empty() && nodes.front().is_object() ? nodes.front() : Json::object();
  if (const Json cpus = sources.value("cpus", Json()); cpus.is_object() && bench.cpu.is_null())
    bench.cpu = cpus.value("model", Json());
  const Json gpus = sources.value("gpus", Json());
  const Json models = gpus.is_object() ? gpus.value("models", Json()) : Json();
  // Our own trainer says where it computes; others use the GPUs that their node has.
  const Json result = record.value("result", Json::object());
  const bool is_on_cpu = result.is_object() && text_at(result, "device") == "cpu";
  const bool has_gpus = models.is_array() && !models.empty() && !is_on_cpu;
  if (has_gpus && bench.gpu.is_null()) bench.gpu = models.front();
  if (const auto arenas = number_at(record, "result/memory_mib/model"); arenas && has_gpus)
    figures.gpu_bytes = *arenas * (1 << 20);
  const Json& attempt = last_attempt(record);
  const auto cpu = number_at(attempt, "energy/cpu_joules"), gpu = number_at(attempt, "energy/gpu_joules");
  if (cpu && (gpu || !has_gpus)) figures.joules = *cpu + gpu.value_or(0);
}

void take_metrics(const Json& result, Figures& figures) {
  if (!result.is_object()) return;
  for (const auto& [name, value] : result.items())
    if (value.is_number()) figures.metrics[name] = value.get<double>();
}

void take_figures(Point& point, Bench& bench, const plan::BenchSpec& spec, const Json& record,
                  const fs::path& run) {
  const Json result = record.value("result", Json());
  if (bench.mode == Mode::metrics) {
    take_metrics(result, point.figures);
    const auto rate = reported_rate(record);
    if (rate && results::is_rate(rate->value) && point.figures.metrics.empty())
      point.figures.rate = rate->value;
    if (point.figures.metrics.empty())
      point.status = PointStatus::failed, point.why = "the program reported no result";
    return;
  }
  const auto rate = measured_rate(record, spec, run);
  if (!rate) {
    point.status = PointStatus::failed;
    point.why = rate.error().what;
    return;
  }
  point.figures.rate = rate->value;
  if (bench.unit.empty()) bench.unit = spec.unit.empty() ? rate->unit : spec.unit;
  take_step_times(result, point.figures);
}

PointStatus status_of(const Json& record, EndedBy by) {
  const Json& attempt = last_attempt(record);
  if (by == EndedBy::limit) return PointStatus::timeout;
  if (by == EndedBy::goal && record.value("exit_code", Json(1)) != 0) return PointStatus::stopped_early;
  if (by == EndedBy::time || record.value("exit_code", Json(1)) == 0) return PointStatus::done;
  if (by == EndedBy::stop) return PointStatus::pending;
  if (ran_out_of_memory(record)) return PointStatus::out_of_memory;
  const Json walltime = attempt.is_object() ? attempt.value("walltime", Json()) : Json();
  const bool at_walltime = walltime.is_object() && text_at(walltime, "stop") != "none";
  if (at_walltime) return by == EndedBy::scheduler ? PointStatus::timeout : PointStatus::pending;
  const bool is_stopped = attempt.is_object() && attempt.value("interrupted_by", Json()).is_string();
  return is_stopped ? PointStatus::pending : PointStatus::failed;
}

std::string why_of(const Json& record, PointStatus status, const plan::BenchSpec& spec) {
  std::string reason = one_line(text_at(record, "reason"));
  if (status == PointStatus::done) return "";
  if (status != PointStatus::timeout) return reason;
  const auto step = number_at(record, "last_progress/step");
  return fmt::format("no end within {}{}", format_duration(spec.limit),
                     step ? fmt::format("; the last step was {:.0f}", *step) : "");
}

}  // namespace

fs::path point_folder(const fs::path& folder, const std::string& id) {
  return folder / "points" / id;
}

void collect(Point& point, Bench& bench, const plan::BenchSpec& spec, const fs::path& folder, EndedBy by) {
  const fs::path run = folder / point.run, file = run / "record.json";
  const auto text = read_regular_file(file, kMaxJsonBytes);
  const auto record = text ? parse_json(*text, file.string()) : fail(text.error());
  point.figures = {};
  if (!record || !record->is_object()) {
    point.status = by == EndedBy::stop    ? PointStatus::pending
                   : by == EndedBy::goal  ? PointStatus::stopped_early
                   : by == EndedBy::limit ? PointStatus::timeout
                                          : PointStatus::failed;
    point.why = error_in_output(point_folder(folder, point.id) / "output.txt");
    if (point.why.empty()) point.why = "its run has no record";
    if (point.status == PointStatus::failed && says_out_of_memory(point.why))
      point.status = PointStatus::out_of_memory;
    return;
  }
  point.status = status_of(*record, by);
  point.why = why_of(*record, point.status, spec);
  point.figures.seconds = seconds_of(*record);
  take_machine(*record, point.figures, bench);
  if (point.status == PointStatus::stopped_early) point.figures.metrics = last_epoch_metrics(run);
  if (point.status == PointStatus::done) take_figures(point, bench, spec, *record, run);
}

}  // namespace dlrun::bench
