#include "src/bench/results/table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/results/findings.hpp"

namespace dlrun::bench::results {
namespace {

constexpr std::string_view kNothing = "-";

// A column of the table with a row per cell.
struct Source {
  Column column;
  std::function<std::string(const Cell&)> text;  // empty: the cell has none
};

bool any(const std::vector<Cell>& cells, const std::function<bool(const Cell&)>& has) {
  return std::any_of(cells.begin(), cells.end(), has);
}

std::string status_text(const Cell& cell) {
  switch (cell.status) {
    case Status::out_of_memory:
      return "out of memory";
    case Status::stopped_early:
      return "stopped early";
    case Status::pending:
    case Status::done:
      return std::string(kNothing);
    default:
      return std::string(name_of(cell.status));
  }
}

Mark mark_of(const Cell& cell) {
  return cell.failed > 0 && cell.status != Status::done ? Mark::failed : Mark::none;
}

std::string rate_name(const Bench& bench) {
  return bench.unit.empty() ? "rate" : bench.unit;
}

void add_axes(const Bench& bench, std::vector<Source>& out) {
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    const Axis& axis = bench.axes[i];
    const bool numbers = std::all_of(axis.values.begin(), axis.values.end(),
                                     [](const Json& value) { return value.is_number(); });
    out.push_back({{std::string(last_name(axis.key)), numbers ? Column::Kind::number : Column::Kind::text},
                   [i](const Cell& cell) { return value_text(cell.values[i]); }});
  }
}

void add_metrics(const std::vector<Cell>& cells, std::vector<Source>& out) {
  std::set<std::string> names;
  for (const Cell& cell : cells)
    for (const auto& [name, value] : cell.metrics) names.insert(name);
  const std::string main = main_metric(cells);
  std::vector<std::string> order;
  if (!main.empty()) order.push_back(main);
  for (const std::string& name : names)
    if (name != main) order.push_back(name);
  for (const std::string& name : order)
    out.push_back({{name}, [name, main](const Cell& cell) {
                     const auto found = cell.metrics.find(name);
                     if (found != cell.metrics.end()) return with_deviation(found->second);
                     return name == main ? status_text(cell) : std::string();
                   }});
  if (main.empty())
    out.push_back(
        {{"status", Column::Kind::text}, [](const Cell& cell) { return std::string(name_of(cell.status)); }});
}

std::vector<Source> main_sources(const Bench& bench, const std::vector<Cell>& cells) {
  std::vector<Source> out;
  add_axes(bench, out);
  if (bench.mode == Mode::metrics) return add_metrics(cells, out), out;
  out.push_back({{rate_name(bench)}, [](const Cell& cell) {
                   return cell.rate ? with_deviation(*cell.rate) : status_text(cell);
                 }});
  return out;
}

template <class Get>
void add_if_any(const std::vector<Cell>& cells, const char* name, Get get, std::vector<Source>& out) {
  if (any(cells, [&](const Cell& cell) { return !get(cell).empty(); })) out.push_back({{name}, get});
}

std::string share_text(const std::optional<double>& share) {
  return share ? percent(*share) : std::string();
}

void add_rest(const Bench& bench, const std::vector<Cell>& cells, std::vector<Source>& out) {
  if (bench.mode == Mode::rate) {
    add_if_any(
        cells, "speed-up",
        [](const Cell& cell) { return cell.speedup ? short_number(*cell.speedup) : std::string(); }, out);
    add_if_any(
        cells, "efficiency", [](const Cell& cell) { return share_text(cell.efficiency); }, out);
    add_if_any(
        cells, "I/O overhead", [](const Cell& cell) { return share_text(cell.io_overhead); }, out);
  }
  add_if_any(
      cells, "ranks",
      [](const Cell& cell) { return cell.ranks > 0 ? std::to_string(cell.ranks) : std::string(); }, out);
  add_if_any(
      cells, "memory",
      [](const Cell& cell) {
        return cell.memory_bytes ? format_size(static_cast<std::uint64_t>(std::min(*cell.memory_bytes, 1e18)))
                                 : std::string();
      },
      out);
  if (bench.mode == Mode::metrics)
    add_if_any(
        cells, "seconds",
        [](const Cell& cell) { return cell.seconds ? with_deviation(*cell.seconds) : std::string(); }, out);
}

// The value by which cells of a row are compared; larger is better.
std::optional<double> score_of(const Bench& bench, const Cell& cell, const std::string& metric) {
  if (bench.mode == Mode::rate) return cell.rate ? std::optional(cell.rate->mean) : std::nullopt;
  const auto found = cell.metrics.find(metric);
  if (found == cell.metrics.end()) return std::nullopt;
  return larger_is_better(metric) ? found->second.mean : -found->second.mean;
}

std::string title_of(const Bench& bench) {
  std::string out = bench.name.empty() ? "bench" : bench.name;
  if (!bench.framework.empty()) out += ", " + bench.framework;
  if (bench.machine.is_object())
    for (const char* part : {"gpu", "cpu"})
      if (const Json name = bench.machine.value(part, Json());
          name.is_string() && !name.get<std::string>().empty()) {
        out += ", " + name.get<std::string>();
        break;
      }
  return out;
}

std::string across_text(const Bench& bench, const Cell& cell, const std::string& metric) {
  if (bench.mode == Mode::rate) return cell.rate ? with_deviation(*cell.rate) : status_text(cell);
  const auto found = cell.metrics.find(metric);
  return found == cell.metrics.end() ? status_text(cell) : with_deviation(found->second);
}

void mark_best(std::vector<TableCell>& row, const std::vector<std::optional<double>>& scores,
               std::size_t first) {
  std::size_t best = scores.size(), measured = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!scores[i]) continue;
    ++measured;
    if (best == scores.size() || *scores[i] > *scores[best]) best = i;
  }
  if (measured > 1) row[first + best].mark = Mark::best;
}

Result<std::size_t> axis_named(const Bench& bench, const std::string& name) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    if (bench.axes[i].key == name || last_name(bench.axes[i].key) == name) return i;
    names.emplace_back(last_name(bench.axes[i].key));
  }
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("this bench has no axis '{}'", name),
                    .hint = did_you_mean(name, names)});
}

}  // namespace

std::string short_number(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.3e}", value);
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, std::clamp(4 - before, 0, 7));
}

std::string with_deviation(const Statistics& value) {
  if (value.n < 2) return short_number(value.mean);
  const std::string mean = short_number(value.mean);
  if (mean.find('e') != std::string::npos) return fmt::format("{} ± {:.1e}", mean, value.std);
  const std::size_t dot = mean.find('.');
  const std::size_t digits = dot == std::string::npos ? 0 : mean.size() - dot - 1;
  // A deviation below the last digit has one of its own: "100 ± 0.02".
  if (value.std > 0 && value.std < 0.5 * std::pow(10.0, -static_cast<double>(digits)))
    return fmt::format("{} ± {:.1g}", mean, value.std);
  return fmt::format("{} ± {:.{}f}", mean, value.std, digits);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

Table table_of(const Bench& bench, const std::vector<Cell>& cells) {
  std::vector<Source> sources = main_sources(bench, cells);
  Table out{
      .title = title_of(bench), .columns = {}, .essential = bench.axes.size() + 1, .rows = {}, .notes = {}};
  add_rest(bench, cells, sources);
  for (const Source& source : sources) out.columns.push_back(source.column);
  for (const Cell& cell : cells) {
    auto& row = out.rows.emplace_back();
    for (const Source& source : sources) {
      const std::string text = source.text(cell);
      row.push_back({text.empty() ? std::string(kNothing) : text});
    }
    row[bench.axes.size()].mark = mark_of(cell);
  }
  out.notes = findings_of(bench, cells);
  return out;
}

Result<Table> table_across(const Bench& bench, const std::vector<Cell>& cells, const std::string& name) {
  const std::size_t axis = TRY(axis_named(bench, name));
  const std::string metric = bench.mode == Mode::metrics ? main_metric(cells) : std::string();
  Table out{.title = fmt::format("{}: {}", title_of(bench), metric.empty() ? rate_name(bench) : metric),
            .columns = {},
            .rows = {},
            .notes = {}};
  for (std::size_t i = 0; i < bench.axes.size(); ++i)
    if (i != axis) out.columns.push_back({std::string(last_name(bench.axes[i].key)), Column::Kind::text});
  const std::size_t first = out.essential = out.columns.size();
  std::vector<Json> across;
  std::map<std::vector<Json>, std::map<Json, const Cell*>> rows;
  std::vector<std::vector<Json>> order;
  for (const Cell& cell : cells) {
    auto others = cell.values;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
    if (!rows.contains(others)) order.push_back(others);
    rows[others][cell.values[axis]] = &cell;
  }
  across = bench.axes[axis].values;
  for (const Json& value : across)
    out.columns.push_back({fmt::format("{}={}", last_name(bench.axes[axis].key), value_text(value))});
  for (const auto& others : order) {
    auto& row = out.rows.emplace_back();
    for (const Json& value : others) row.push_back({value_text(value)});
    std::vector<std::optional<double>> scores;
    for (const Json& value : across) {
      const auto found = rows[others].find(value);
      const Cell* cell = found == rows[others].end() ? nullptr : found->second;
      row.push_back({cell ? across_text(bench, *cell, metric) : std::string(kNothing),
                     cell ? mark_of(*cell) : Mark::none});
      scores.push_back(cell ? score_of(bench, *cell, metric) : std::nullopt);
    }
    mark_best(row, scores, first);
  }
  out.notes = findings_of(bench, cells);
  return out;
}

}  // namespace dlrun::bench::results
