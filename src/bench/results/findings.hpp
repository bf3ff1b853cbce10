// What a bench shows beside its cells, as lines for people: the best value of each axis, the largest batch
// that fits, the best run, why cells failed. A line names the cells that it is about.
#pragma once

#include <string>
#include <vector>

#include "src/bench/results/cells.hpp"

namespace dlrun::bench::results {

std::vector<std::string> findings_of(const Bench& bench, const std::vector<Cell>& cells);

}  // namespace dlrun::bench::results
