#include "src/bench/results/page_data.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "src/bench/results/formats.hpp"

namespace dlrun::bench::results {
namespace {

constexpr std::size_t kMaxCurves = 14;  // what colours and dashes tell apart

using Value = std::function<std::optional<double>(const Cell&)>;
using Curve = std::map<double, double>;

struct Curves {
  std::vector<std::string> names;  // in the order of the table
  std::map<std::string, Curve> by_name;
};

Curves curves_along(const Bench& bench, const std::vector<Cell>& cells, std::size_t axis,
                    const Value& value) {
  Curves out;
  for (const Cell& cell : cells) {
    const auto y = value(cell);
    if (!y || !cell.values[axis].is_number()) continue;
    const std::string name = label_of(bench, cell.values, bench.axes[axis].key);
    if (!out.by_name.contains(name)) out.names.push_back(name);
    out.by_name[name][cell.values[axis].get<double>()] = *y;
  }
  return out;
}

Json curve_json(const std::string& name, const char* kind, const Curve& curve) {
  Json out{{"name", name}, {"kind", kind}, {"x", Json::array()}, {"y", Json::array()}};
  for (const auto& [x, y] : curve) {
    out["x"].push_back(x);
    out["y"].push_back(y);
  }
  return out;
}

bool has_curve(const Curves& curves) {
  return std::any_of(curves.by_name.begin(), curves.by_name.end(),
                     [](const auto& each) { return each.second.size() > 1; });
}

// As if the first curve went on from its first point as it began.
Curve ideal_of(const Curve& curve) {
  Curve out;
  const auto [x0, y0] = *curve.begin();
  for (const auto& [x, y] : curve) out[x] = y0 * x / x0;
  return out;
}

struct Plot {
  std::string title, x_name;
  const char* unit;   // "number", "share", "seconds"
  const char* scale;  // "log": both axes; "log-x"; "linear"
};

enum class Ideal { none, line };

void add_plot(const Plot& plot, const Curves& curves, Ideal ideal, Json& out) {
  if (!has_curve(curves)) return;
  Json series = Json::array();
  for (const std::string& name : curves.names)
    if (series.size() < kMaxCurves)
      series.push_back(curve_json(name.empty() ? "measured" : name, "measured", curves.by_name.at(name)));
  const Curve& first = curves.by_name.at(curves.names.front());
  if (ideal == Ideal::line && first.size() > 1)
    series.push_back(
        curve_json(curves.names.size() > 1 ? "ideal of the first" : "ideal", "ideal", ideal_of(first)));
  const std::size_t hidden = curves.names.size() - std::min(curves.names.size(), kMaxCurves);
  out.push_back({{"title", plot.title},
                 {"x_name", plot.x_name},
                 {"unit", plot.unit},
                 {"scale", plot.scale},
                 {"series", std::move(series)},
                 {"not_shown", hidden}});
}

bool has_numbers(const Axis& axis) {
  return std::count_if(axis.values.begin(), axis.values.end(),
                       [](const Json& value) { return value.is_number(); }) > 1;
}

bool has_positive_numbers(const Axis& axis) {
  return std::all_of(axis.values.begin(), axis.values.end(),
                     [](const Json& value) { return !value.is_number() || value.get<double>() > 0; });
}

void add_rate_plots(const Bench& bench, const std::vector<Cell>& cells, std::size_t axis, Json& out) {
  const std::string name(last_name(bench.axes[axis].key));
  const std::string unit = bench.unit.empty() ? "rate" : bench.unit;
  const bool scale = is_scale(bench.axes[axis]);
  const auto rate = curves_along(bench, cells, axis, [scale](const Cell& cell) -> std::optional<double> {
    if (!cell.rate || (scale && cell.rate->mean <= 0)) return std::nullopt;  // a logarithm has no 0
    return cell.rate->mean;
  });
  add_plot({.title = unit + " by " + name,
            .x_name = name,
            .unit = "number",
            .scale = scale                                    ? "log"
                     : has_positive_numbers(bench.axes[axis]) ? "log-x"
                                                              : "linear"},
           rate, scale ? Ideal::line : Ideal::none, out);
  if (!scale) return;
  const auto efficiency = curves_along(bench, cells, axis, [](const Cell& cell) { return cell.efficiency; });
  add_plot({.title = "Efficiency by " + name, .x_name = name, .unit = "share", .scale = "log-x"}, efficiency,
           Ideal::none, out);
}

void add_metric_plots(const Bench& bench, const std::vector<Cell>& cells, std::size_t axis, Json& out) {
  const std::string name(last_name(bench.axes[axis].key)), metric = main_metric(cells);
  const char* scale = has_positive_numbers(bench.axes[axis]) ? "log-x" : "linear";
  const auto values = curves_along(bench, cells, axis, [&](const Cell& cell) -> std::optional<double> {
    const auto found = cell.metrics.find(metric);
    return found == cell.metrics.end() ? std::nullopt : std::optional(found->second.mean);
  });
  add_plot({.title = metric + " by " + name, .x_name = name, .unit = "number", .scale = scale}, values,
           Ideal::none, out);
  const auto seconds = curves_along(bench, cells, axis, [](const Cell& cell) {
    return cell.seconds ? std::optional(cell.seconds->mean) : std::nullopt;
  });
  add_plot({.title = "Time by " + name, .x_name = name, .unit = "seconds", .scale = scale}, seconds,
           Ideal::none, out);
}

const char* word_of(Mark mark) {
  return mark == Mark::best ? "best" : mark == Mark::failed ? "failed" : "";
}

Json table_json(const Table& table) {
  Json out{
      {"title", table.title}, {"columns", Json::array()}, {"rows", Json::array()}, {"notes", table.notes}};
  for (const Column& column : table.columns)
    out["columns"].push_back(
        {{"name", column.name}, {"kind", column.kind == Column::Kind::number ? "number" : "text"}});
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const TableCell& cell : row) cells.push_back({{"text", cell.text}, {"mark", word_of(cell.mark)}});
    out["rows"].push_back(std::move(cells));
  }
  return out;
}

}  // namespace

Json plots_json(const Bench& bench, const std::vector<Cell>& cells) {
  Json out = Json::array();
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    if (!has_numbers(bench.axes[i])) continue;
    if (bench.mode == Mode::rate)
      add_rate_plots(bench, cells, i, out);
    else
      add_metric_plots(bench, cells, i, out);
  }
  return out;
}

Json page_json(const Bench& bench, const std::vector<Cell>& cells) {
  return {{"schema", "dlrun.bench-page/1"},
          {"bench", cells_json(bench, cells)},
          {"table", table_json(table_of(bench, cells))},
          {"plots", plots_json(bench, cells)}};
}

}  // namespace dlrun::bench::results
