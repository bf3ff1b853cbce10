// The data of a bench's page, dlrun.bench-page/1: the table, and the curves that follow from the axes. Pure.
// The page only draws them: which curves there are is decided here.
#pragma once

#include "src/bench/results/table.hpp"

namespace dlrun::bench::results {

/// A plot for each axis of numbers, a curve for each value of the others: the rate (of trainings, the main
/// metric), with the ideal line where the axis counts resources, and the efficiency.
Json plots_json(const Bench& bench, const std::vector<Cell>& cells);

Json page_json(const Bench& bench, const std::vector<Cell>& cells);

}  // namespace dlrun::bench::results
