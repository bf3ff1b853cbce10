#include "src/cli/bench_printer.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/results/table.hpp"
#include "src/cli/bench_lines.hpp"

namespace dlrun::cli {

namespace results = bench::results;

using bench::Bench;
using bench::Mode;
using bench::Point;
using bench::PointStatus;
using bench::Standing;

namespace {

constexpr std::size_t kShownMetrics = 4;

std::string figures_text(const Bench& bench, const Point& point) {
  if (bench.mode == Mode::rate && point.figures.rate)
    return fmt::format("{:.4g} {}", *point.figures.rate, bench.unit);
  std::vector<std::string> parts;
  for (const auto& [name, value] : point.figures.metrics)
    if (parts.size() < kShownMetrics) parts.push_back(fmt::format("{} {:.4g}", name, value));
  return join(parts, ", ");
}

// Without its notes: why points failed is in their lines.
std::vector<std::string> table_so_far(const Bench& bench, int width) {
  const auto parsed = results::parse_bench(to_json(bench), "bench.json");
  if (!parsed) return {};
  const results::Bench shown = results::with_seeds_as_repeats(*parsed);
  results::Table table = results::table_of(shown, results::cells_of(shown));
  table.notes.clear();
  return table_lines(table, width, [](std::string_view text, Tint) { return std::string(text); });
}

}  // namespace

std::string line_of(const Bench& bench, const Point& point) {
  const bool is_done = point.status == PointStatus::done;
  std::string out = fmt::format("{} {}: ", point.id, text_of(point));
  if (!is_done) out += std::string(bench::kPointStatuses.name(point.status));
  if (!is_done && !point.why.empty()) out += ": " + point.why;
  if (is_done) out += figures_text(bench, point);
  if (point.figures.seconds) out += fmt::format(" ({})", format_duration(Seconds(*point.figures.seconds)));
  return out;
}

std::string progress_of(const Standing& standing) {
  std::string out = fmt::format("point {} of {}", std::min(standing.over + 1, standing.all), standing.all);
  if (standing.running.size() == 1) out += " · " + text_of(*standing.running.front());
  if (standing.running.size() > 1) out += fmt::format(" · {} at once", standing.running.size());
  if (standing.left) out += fmt::format(" · {} left", format_duration(*standing.left));
  return out;
}

std::string summary_of(const Bench& bench) {
  std::string out;
  for (const auto& [status, name] : bench::kPointStatuses.rows) {
    const auto count =
        std::count_if(bench.points.begin(), bench.points.end(),
                      [wanted = status](const Point& point) { return point.status == wanted; });
    if (status == PointStatus::done)
      out = fmt::format("{} of {} points measured", count, bench.points.size()) + out;
    if (status != PointStatus::done && count > 0) out += fmt::format(", {} {}", count, name);
  }
  return out;
}

void BenchPrinter::started(const Standing& standing, const Point& point) {
  if (!console_.interactive())
    console_.detail(fmt::format("dlrun: {} {}: started", point.id, text_of(point)));
  waiting(standing);
}

void BenchPrinter::ended(const Bench& bench, const Point& point) {
  if (console_.interactive()) table_ = table_so_far(bench, console_.width() - 1);
  console_.say("dlrun: " + line_of(bench, point));
}

void BenchPrinter::waiting(const Standing& standing) {
  std::vector<std::string> lines = table_;
  lines.push_back(progress_of(standing));
  console_.status_lines(lines);
}

void BenchPrinter::note(const std::string& text) {
  console_.say("dlrun: " + text);
}

}  // namespace dlrun::cli
