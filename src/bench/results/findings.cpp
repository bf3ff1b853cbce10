#include "src/bench/results/findings.hpp"

#include <algorithm>
#include <map>

#include "src/base/strings.hpp"
#include "src/bench/results/table.hpp"

namespace dlrun::bench::results {
namespace {

constexpr std::size_t kMaxPlaces = 12, kMaxFailures = 10;

// The cells that differ in one axis alone, by the values of the others.
using Lines = std::map<std::vector<Json>, std::vector<const Cell*>>;

Lines lines_along(const std::vector<Cell>& cells, std::size_t axis) {
  Lines out;
  for (const Cell& cell : cells) {
    auto others = cell.values;
    others[axis] = nullptr;
    out[others].push_back(&cell);
  }
  return out;
}

// In the order of the table, not of the map.
std::vector<const std::vector<const Cell*>*> in_order(const std::vector<Cell>& cells, const Lines& lines,
                                                      std::size_t axis) {
  std::vector<const std::vector<const Cell*>*> out;
  for (const Cell& cell : cells) {
    auto others = cell.values;
    others[axis] = nullptr;
    const auto* line = &lines.at(others);
    if (line->front() == &cell) out.push_back(line);
  }
  return out;
}

std::string listed(const std::string& what, std::vector<std::string> places) {
  if (places.empty()) return {};
  const std::size_t all = places.size();
  if (all > kMaxPlaces) places.resize(kMaxPlaces);
  return what + ": " + join(places, "; ") +
         (all > kMaxPlaces ? fmt::format("; and {} more", all - kMaxPlaces) : "");
}

std::string at(const std::string& label) {
  return label.empty() ? "" : " at " + label;
}

const Cell* fastest(const std::vector<const Cell*>& line) {
  const Cell* best = nullptr;
  std::size_t measured = 0;
  for (const Cell* cell : line) {
    if (!cell->rate) continue;
    ++measured;
    if (!best || cell->rate->mean > best->rate->mean) best = cell;
  }
  return measured > 1 ? best : nullptr;  // of one, nothing is the best
}

std::string best_of(const Bench& bench, const std::vector<Cell>& cells, std::size_t axis) {
  const auto lines = lines_along(cells, axis);
  std::vector<std::string> places;
  for (const auto* line : in_order(cells, lines, axis))
    if (const Cell* best = fastest(*line))
      places.push_back(fmt::format("{}{}", value_text(best->values[axis]),
                                   at(label_of(bench, best->values, bench.axes[axis].key))));
  const std::string_view name = last_name(bench.axes[axis].key);
  return listed(name == "servers" ? "best number of servers" : fmt::format("best {}", name),
                std::move(places));
}

bool is_batch(std::string_view key) {
  return last_name(key) == "batch" || last_name(key) == "global-batch";
}

std::string largest_batch(const Bench& bench, const std::vector<Cell>& cells, std::size_t axis) {
  const auto number = [axis](const Cell* cell) {
    return cell->values[axis].is_number() ? cell->values[axis].get<double>() : -1;
  };
  const auto lines = lines_along(cells, axis);
  std::vector<std::string> places;
  for (const auto* line : in_order(cells, lines, axis)) {
    const Cell *fits = nullptr, *beyond = nullptr;
    for (const Cell* cell : *line) {
      if (cell->status == Status::done && (!fits || number(cell) > number(fits))) fits = cell;
      if (cell->status == Status::out_of_memory && (!beyond || number(cell) < number(beyond))) beyond = cell;
    }
    if (!beyond) continue;  // the limit was not reached
    places.push_back(fmt::format(
        "{}{} ({} runs out of memory)", fits ? value_text(fits->values[axis]) : "none",
        at(label_of(bench, line->front()->values, bench.axes[axis].key)), value_text(beyond->values[axis])));
  }
  return listed(fmt::format("largest {} that fits", last_name(bench.axes[axis].key)), std::move(places));
}

std::string best_run(const Bench& bench, const std::vector<Cell>& cells) {
  const std::string metric = main_metric(cells);
  const Cell* best = nullptr;
  for (const Cell& cell : cells) {
    const auto found = cell.metrics.find(metric);
    if (found == cell.metrics.end()) continue;
    const double known = best ? best->metrics.at(metric).mean : 0;
    if (!best || (larger_is_better(metric) ? found->second.mean > known : found->second.mean < known))
      best = &cell;
  }
  if (!best) return {};
  return fmt::format("best run by {}: {}{}{}", metric, with_deviation(best->metrics.at(metric)),
                     at(label_of(bench, best->values)), best->run.empty() ? "" : ", " + best->run);
}

std::string failure(const Bench& bench, const Cell& cell) {
  const std::string share =
      cell.failed < cell.repeats ? fmt::format(" ({} of {} repeats)", cell.failed, cell.repeats) : "";
  const std::string status = cell.failed < cell.repeats ? "failed" : std::string(name_of(cell.status));
  const std::string label = label_of(bench, cell.values);
  return fmt::format("{}{}{}{}", label.empty() ? "" : label + ": ", status, share,
                     cell.why.empty() ? "" : ": " + cell.why);
}

void add_failures(const Bench& bench, const std::vector<Cell>& cells, std::vector<std::string>& out) {
  std::size_t count = 0;
  for (const Cell& cell : cells)
    if (cell.failed > 0 && ++count <= kMaxFailures) out.push_back(failure(bench, cell));
  if (count > kMaxFailures) out.push_back(fmt::format("and {} more cells failed", count - kMaxFailures));
}

}  // namespace

std::vector<std::string> findings_of(const Bench& bench, const std::vector<Cell>& cells) {
  std::vector<std::string> out;
  const auto add = [&](std::string line) {
    if (!line.empty()) out.push_back(std::move(line));
  };
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    const Axis& axis = bench.axes[i];
    const bool is_data = last_name(axis.key) == "data";
    if (bench.mode == Mode::rate && !is_data && !is_scale(axis) && axis.values.size() > 1)
      add(best_of(bench, cells, i));
    if (is_batch(axis.key)) add(largest_batch(bench, cells, i));
  }
  if (bench.mode == Mode::metrics) add(best_run(bench, cells));
  const auto open = std::count_if(cells.begin(), cells.end(), [](const Cell& cell) {
    return cell.status == Status::pending || cell.status == Status::running;
  });
  if (open > 0) add(fmt::format("{} of {} cells are not measured yet", open, cells.size()));
  add_failures(bench, cells, out);
  return out;
}

}  // namespace dlrun::bench::results
