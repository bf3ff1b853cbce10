// downsample(): which points of a long series a plot shows. Pure. A plot of some hundred pixels cannot show a
// million points, and a mean would hide the spike that somebody looks for: each bucket keeps its lowest and
// its highest point, and the series its first and its last.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dlrun::report {

/// Indices into `values`, ascending, at most max(`points`, 4) of them.
std::vector<std::size_t> downsample(std::span<const double> values, std::size_t points);

}  // namespace dlrun::report
