// Cells: the repeats of equal values together, with what follows from comparing cells: speed-up, efficiency,
// I/O overhead. A cell in which every repeat failed stays a cell. Nothing is computed from a cell without a
// rate.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/bench/results/bench.hpp"

namespace dlrun::bench::results {

struct Statistics {
  double mean = 0, std = 0;  // std: of the sample; 0 where n is 1
  int n = 0;
};
Statistics statistics(const std::vector<double>& values);
/// null where there is none; the deviation is null where n is 1.
Json statistics_json(const std::optional<Statistics>& value);

struct Cell {
  std::vector<Json> values;  // of the axes
  int ranks = 0;
  Status status = Status::pending;  // done where any repeat is
  std::string why;                  // the first failure of a repeat
  std::string run;                  // of the first repeat that is done, else of the first
  int repeats = 0, failed = 0;
  std::vector<double> rates;
  std::optional<Statistics> rate;
  std::optional<StepSeconds> step;  // of the first repeat that has one
  std::map<std::string, Statistics> metrics;
  std::optional<Statistics> seconds;
  std::optional<double> memory_bytes,
      joules;  // the most of the repeats: of the GPU where it is known; the mean
  std::optional<double> speedup, efficiency;  // against the smallest cell of its series
  std::optional<double> io_overhead;          // of real data against synthetic: share of the synthetic rate
};

/// The bench without an axis `seed`, whose values are repeats then: where that is the only one, of one cell.
Bench with_seeds_as_repeats(Bench bench);

/// In the order of the axes' values.
std::vector<Cell> cells_of(const Bench& bench);

/// Whether an axis counts resources, so that a rate should grow with it: nodes, tasks-per-node, gpus, ranks.
bool is_scale(const Axis& axis);
/// The resources of a cell, as a multiple of what other cells of the bench have; unset where no axis counts
/// them.
std::optional<double> scale_of(const Bench& bench, const Cell& cell);
/// Values of the axes that count no resources: equal for cells of one series. The number of parameter servers
/// does not count: each size has its best.
std::vector<Json> series_of(const Bench& bench, const Cell& cell);

/// "nodes=2, batch=64"; `except`: an axis that is left out.
std::string label_of(const Bench& bench, const std::vector<Json>& values, std::string_view except = {});

/// Whether a larger value of this metric is better: not of losses, errors and times.
bool larger_is_better(std::string_view metric);
/// The metric by which runs are ranked: an accuracy, else a loss, else the first; empty: there is none.
std::string main_metric(const std::vector<Cell>& cells);

}  // namespace dlrun::bench::results
