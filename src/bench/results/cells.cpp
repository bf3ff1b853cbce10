#include "src/bench/results/cells.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace dlrun::bench::results {
namespace {

constexpr std::string_view kNodes[] = {"nodes"};
// What a node is divided into, the first that is an axis: they grow together.
constexpr std::string_view kPerNode[] = {"ranks", "tasks-per-node", "gpus-per-node", "gpus"};

// The place of a value in its axis; values that the axis does not list come last.
std::size_t place_of(const Axis& axis, const Json& value) {
  return static_cast<std::size_t>(std::find(axis.values.begin(), axis.values.end(), value) -
                                  axis.values.begin());
}

std::vector<std::size_t> order_of(const Bench& bench, const Cell& cell) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < bench.axes.size(); ++i) out.push_back(place_of(bench.axes[i], cell.values[i]));
  return out;
}

void sort_by_axes(const Bench& bench, std::vector<Cell>& cells) {
  std::vector<std::pair<std::vector<std::size_t>, std::size_t>> order;
  for (const Cell& cell : cells) order.emplace_back(order_of(bench, cell), order.size());
  std::sort(order.begin(), order.end());
  std::vector<Cell> sorted;
  for (const auto& [key, place] : order) sorted.push_back(std::move(cells[place]));
  cells = std::move(sorted);
}

// Which of several repeats' ends a cell shows.
int rank_of(Status status) {
  switch (status) {
    case Status::done:
      return 0;
    case Status::out_of_memory:
      return 1;
    case Status::timeout:
      return 2;
    case Status::failed:
      return 3;
    case Status::stopped_early:
      return 4;
    case Status::running:
      return 5;
    case Status::pending:
      return 6;
  }
  return 6;
}

bool is_failure(Status status) {
  return status == Status::failed || status == Status::out_of_memory || status == Status::timeout;
}

struct Repeats {
  std::vector<double> seconds, joules;
  std::map<std::string, std::vector<double>> metrics;
};

void take(const Point& point, Cell& cell, Repeats& repeats) {
  const bool first = cell.repeats == 0;
  if (is_failure(point.status)) {
    ++cell.failed;
    if (cell.why.empty()) cell.why = point.why;
  }
  if (first || rank_of(point.status) < rank_of(cell.status)) {
    cell.status = point.status;
    cell.run = point.run;
    cell.ranks = point.ranks;
  }
  ++cell.repeats;
  const auto& memory = point.gpu_bytes ? point.gpu_bytes : point.max_rss_bytes;
  if (memory) cell.memory_bytes = std::max(cell.memory_bytes.value_or(0), *memory);
  if (point.status != Status::done) return;
  if (point.rate) cell.rates.push_back(*point.rate);
  if (!cell.step) cell.step = point.step;
  if (point.seconds) repeats.seconds.push_back(*point.seconds);
  if (point.joules) repeats.joules.push_back(*point.joules);
  for (const auto& [name, value] : point.metrics) repeats.metrics[name].push_back(value);
}

void finish(Cell& cell, const Repeats& repeats) {
  if (!cell.rates.empty()) cell.rate = statistics(cell.rates);
  if (!repeats.seconds.empty()) cell.seconds = statistics(repeats.seconds);
  if (!repeats.joules.empty()) cell.joules = statistics(repeats.joules).mean;
  for (const auto& [name, values] : repeats.metrics) cell.metrics[name] = statistics(values);
}

const Axis* axis_of(const Bench& bench, std::string_view name) {
  for (const Axis& axis : bench.axes)
    if (last_name(axis.key) == name && is_scale(axis)) return &axis;
  return nullptr;
}

// The smaller one; of several with other numbers of servers the fastest.
bool comes_before(double scale, const Cell& cell, double other_scale, const Cell& other) {
  return scale < other_scale || (scale == other_scale && cell.rate->mean > other.rate->mean);
}

void add_scaling(const Bench& bench, std::vector<Cell>& cells) {
  std::map<std::vector<Json>, const Cell*> smallest;
  const auto has_rate = [](const Cell& cell) { return cell.rate && cell.rate->mean > 0; };
  for (const Cell& cell : cells) {
    const auto scale = scale_of(bench, cell);
    if (!scale || !has_rate(cell)) continue;
    const Cell*& known = smallest[series_of(bench, cell)];
    if (!known || comes_before(*scale, cell, *scale_of(bench, *known), *known)) known = &cell;
  }
  for (Cell& cell : cells) {
    const auto found = smallest.find(series_of(bench, cell));
    const auto scale = scale_of(bench, cell);
    if (found == smallest.end() || !scale || !has_rate(cell)) continue;
    cell.speedup = cell.rate->mean / found->second->rate->mean;
    cell.efficiency = *cell.speedup / (*scale / *scale_of(bench, *found->second));
  }
}

void add_io_overhead(const Bench& bench, std::vector<Cell>& cells) {
  const auto axis = std::find_if(bench.axes.begin(), bench.axes.end(),
                                 [](const Axis& each) { return last_name(each.key) == "data"; });
  if (axis == bench.axes.end()) return;
  const auto place = static_cast<std::size_t>(axis - bench.axes.begin());
  std::map<std::vector<Json>, double> synthetic;
  for (const Cell& cell : cells)
    if (cell.values[place] == "synthetic" && cell.rate && cell.rate->mean > 0)
      synthetic[cell.values] = cell.rate->mean;
  for (Cell& cell : cells) {
    if (cell.values[place] != "real" || !cell.rate) continue;
    auto other = cell.values;
    other[place] = "synthetic";
    if (const auto found = synthetic.find(other); found != synthetic.end())
      cell.io_overhead = 1 - cell.rate->mean / found->second;
  }
}

template <class Keep>
std::string label(const Bench& bench, const std::vector<Json>& values, Keep keep) {
  std::string out;
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    if (!keep(bench.axes[i]) || values[i].is_null()) continue;
    if (!out.empty()) out += ", ";
    out += fmt::format("{}={}", last_name(bench.axes[i].key), value_text(values[i]));
  }
  return out;
}

}  // namespace

Statistics statistics(const std::vector<double>& values) {
  Statistics out{.n = static_cast<int>(values.size())};
  if (values.empty()) return out;
  for (const double value : values) out.mean += value;
  out.mean /= out.n;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  if (out.n > 1) out.std = std::sqrt(squares / (out.n - 1));
  return out;
}

Json statistics_json(const std::optional<Statistics>& value) {
  if (!value) return nullptr;
  return {{"mean", value->mean}, {"std", value->n > 1 ? Json(value->std) : Json()}, {"n", value->n}};
}

Bench with_seeds_as_repeats(Bench bench) {
  const auto axis = std::find_if(bench.axes.begin(), bench.axes.end(),
                                 [](const Axis& each) { return last_name(each.key) == "seed"; });
  if (axis == bench.axes.end()) return bench;
  const auto place = axis - bench.axes.begin();
  for (Point& point : bench.points) point.values.erase(point.values.begin() + place);
  bench.axes.erase(axis);
  return bench;
}

std::vector<Cell> cells_of(const Bench& bench) {
  std::map<std::vector<Json>, std::size_t> places;
  std::vector<Cell> cells;
  std::vector<Repeats> repeats;
  for (const Point& point : bench.points) {
    const auto [found, is_new] = places.emplace(point.values, cells.size());
    if (is_new) {
      cells.emplace_back().values = point.values;
      repeats.emplace_back();
    }
    take(point, cells[found->second], repeats[found->second]);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) finish(cells[i], repeats[i]);
  sort_by_axes(bench, cells);
  add_scaling(bench, cells);
  add_io_overhead(bench, cells);
  return cells;
}

bool is_scale(const Axis& axis) {
  const std::string_view name = last_name(axis.key);
  const auto among = [&](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (!among(kNodes) && !among(kPerNode)) return false;
  return axis.values.size() > 1 && std::all_of(axis.values.begin(), axis.values.end(), [](const Json& value) {
           return value.is_number() && value.get<double>() > 0;
         });
}

std::optional<double> scale_of(const Bench& bench, const Cell& cell) {
  std::optional<double> out;
  const auto multiply = [&](const Axis* axis) {
    if (!axis) return false;
    const Json& value = cell.values[static_cast<std::size_t>(axis - bench.axes.data())];
    if (value.is_number() && value.get<double>() > 0) out = out.value_or(1) * value.get<double>();
    return true;
  };
  if (multiply(axis_of(bench, "ranks"))) return out;
  multiply(axis_of(bench, "nodes"));
  for (const std::string_view name : kPerNode)
    if (multiply(axis_of(bench, name))) break;
  return out;
}

std::vector<Json> series_of(const Bench& bench, const Cell& cell) {
  std::vector<Json> out;
  for (std::size_t i = 0; i < bench.axes.size(); ++i)
    if (!is_scale(bench.axes[i]) && last_name(bench.axes[i].key) != "servers") out.push_back(cell.values[i]);
  return out;
}

std::string label_of(const Bench& bench, const std::vector<Json>& values, std::string_view except) {
  return label(bench, values, [&](const Axis& axis) { return axis.key != except; });
}

bool larger_is_better(std::string_view metric) {
  for (const std::string_view part : {"loss", "error", "perplexity", "seconds", "time"})
    if (metric.find(part) != std::string_view::npos) return false;
  return true;
}

std::string main_metric(const std::vector<Cell>& cells) {
  std::set<std::string> names;
  for (const Cell& cell : cells)
    for (const auto& [name, values] : cell.metrics) names.insert(name);
  for (const char* wanted : {"test_accuracy", "accuracy", "test_loss", "loss"})
    for (const std::string& name : names)
      if (name.find(wanted) != std::string::npos) return name;
  return names.empty() ? std::string() : *names.begin();
}

}  // namespace dlrun::bench::results
