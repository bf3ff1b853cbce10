#include "src/bench/predict/workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace dlrun::bench::predict {
namespace {

using results::Axis;
using results::Bench;
using results::Cell;

constexpr double kLeastNoise = 0.01;

std::optional<std::size_t> axis_of(const Bench& bench, std::string_view name) {
  for (std::size_t i = 0; i < bench.axes.size(); ++i)
    if (results::last_name(bench.axes[i].key) == name) return i;
  return std::nullopt;
}

std::optional<double> number_of(const Bench& bench, const Cell& cell, std::string_view name) {
  const auto axis = axis_of(bench, name);
  if (!axis || !cell.values[*axis].is_number()) return std::nullopt;
  return cell.values[*axis].get<double>();
}

std::string series_text(const Bench& bench, const Cell& cell) {
  std::string out;
  for (std::size_t i = 0; i < bench.axes.size(); ++i) {
    const std::string_view name = results::last_name(bench.axes[i].key);
    if (results::is_scale(bench.axes[i]) || name == "servers" || bench.axes[i].values.size() < 2) continue;
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, results::value_text(cell.values[i]));
  }
  return out;
}

bool has_servers_of_its_own(const Bench& bench) {
  return bench.framework.find("-ps") != std::string::npos;
}

Algorithm algorithm_of(const Bench& bench, const Cell& cell) {
  if (axis_of(bench, "servers") || has_servers_of_its_own(bench)) return Algorithm::parameter_server;
  const auto axis = axis_of(bench, "algorithm");
  const std::string name = axis ? results::value_text(cell.values[*axis]) : "";
  if (name.find("hier") != std::string::npos) return Algorithm::hierarchical;
  return name.find("halving") != std::string::npos ? Algorithm::halving_doubling : Algorithm::ring;
}

// Ranks that train; those of a framework's own servers do not count.
double workers_of(const Bench& bench, const Cell& cell, double servers) {
  return cell.ranks - (has_servers_of_its_own(bench) ? servers : 0);
}

Size size_of(const Bench& bench, const Cell& cell) {
  Size out{.servers = std::max(number_of(bench, cell, "servers").value_or(1), 1.0)};
  const double scale = results::scale_of(bench, cell).value_or(1);
  const auto nodes = number_of(bench, cell, "nodes");
  if (!nodes || *nodes < 1) return {.nodes = scale, .ranks_per_node = 1, .servers = out.servers};
  out.nodes = *nodes;
  const double per_node =
      scale > *nodes ? scale / *nodes : std::floor(workers_of(bench, cell, out.servers) / *nodes);
  out.ranks_per_node = std::max(per_node, 1.0);
  return out;
}

double noise_of(const Cell& cell) {
  double out = kLeastNoise;
  if (cell.rate->n > 1 && cell.rate->mean > 0)
    out = std::max(out, cell.rate->std / cell.rate->mean / std::sqrt(cell.rate->n));
  return out;
}

// Seconds per step of the smallest cell, where anything tells.
std::optional<double> seconds_of(const Bench& bench, const Cell& cell, double ranks) {
  if (cell.step && cell.step->mean > 0) return cell.step->mean;
  if (const auto all = number_of(bench, cell, "global-batch")) return *all / cell.rate->mean;
  if (const auto batch = number_of(bench, cell, "batch")) return *batch * ranks / cell.rate->mean;
  return std::nullopt;
}

std::optional<double> bytes_of(const Bench& bench, const Cell& cell) {
  for (const results::Point& point : bench.points)
    if (point.values == cell.values && point.bytes_per_step && *point.bytes_per_step > 0)
      return *point.bytes_per_step;
  return std::nullopt;
}

void add_points(const Bench& bench, const std::vector<const Cell*>& cells, double base_seconds,
                Workload& out) {
  const Cell& base = *cells.front();
  const double base_ranks = size_of(bench, base).ranks();
  for (const Cell* cell : cells) {
    Measured point{.size = size_of(bench, *cell), .rate = cell->rate->mean};
    const double work = out.scaling == Scaling::strong ? 1 : point.size.ranks() / base_ranks;
    point.seconds = base_seconds * work * base.rate->mean / cell->rate->mean;
    point.noise = noise_of(*cell) * point.seconds;
    out.points.push_back(point);
    if (!out.bytes) out.bytes = bytes_of(bench, *cell);
  }
}

void add_assumptions(const Bench& bench, Workload& out) {
  if (out.algorithm == Algorithm::parameter_server && !axis_of(bench, "servers"))
    out.assumptions.emplace_back("there is no axis for the number of servers: 1 at each measured point");
  if (out.scaling == Scaling::strong)
    out.assumptions.emplace_back(
        "strong scaling: a rank's computation shrinks as its part of the global batch does; small batches "
        "compute less "
        "efficiently, and then the prediction is too high");
  else
    out.assumptions.emplace_back("weak scaling: each rank computes as long as in the smallest point");
  if (!axis_of(bench, "nodes")) out.assumptions.emplace_back("there is no axis nodes: one rank per node");
}

Workload workload_of(const Bench& bench, std::vector<const Cell*> cells) {
  std::stable_sort(cells.begin(), cells.end(), [&](const Cell* a, const Cell* b) {
    return size_of(bench, *a).ranks() < size_of(bench, *b).ranks();
  });
  const Cell& base = *cells.front();
  const auto seconds = seconds_of(bench, base, size_of(bench, base).ranks());
  Workload out{.series = series_text(bench, base),
               .scaling = axis_of(bench, "global-batch") ? Scaling::strong : Scaling::weak,
               .algorithm = algorithm_of(bench, base),
               .absolute = seconds.has_value(),
               .step_std = base.step ? base.step->std : 0,
               .bytes = {},
               .points = {},
               .assumptions = {}};
  add_points(bench, cells, seconds.value_or(1), out);
  add_assumptions(bench, out);
  return out;
}

}  // namespace

Result<std::vector<Workload>> workloads_of(const Bench& bench) {
  if (std::none_of(bench.axes.begin(), bench.axes.end(), results::is_scale))
    return bad_input(
        "", "no axis of this bench counts resources, so the rate on more of them cannot be predicted",
        "a prediction needs an axis such as nodes with two values or more");
  const auto cells = results::cells_of(bench);
  std::map<std::vector<Json>, std::size_t> places;
  std::vector<std::vector<const Cell*>> groups;
  for (const Cell& cell : cells) {
    if (!cell.rate || cell.rate->mean <= 0 || !results::scale_of(bench, cell)) continue;
    const auto [found, is_new] = places.emplace(results::series_of(bench, cell), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(&cell);
  }
  if (groups.empty()) return bad_input("", "no cell of this bench has a rate");
  std::vector<Workload> out;
  for (auto& group : groups) out.push_back(workload_of(bench, std::move(group)));
  return out;
}

}  // namespace dlrun::bench::predict
