// A table of a bench as lines for a terminal, and its comparison with another: aligned columns, and only
// those that fit into the width. Text of a run cannot change the terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/bench/results/table.hpp"
#include "src/cli/console.hpp"

namespace dlrun::cli {

/// Colours a text, or leaves it as it is.
using Paint = std::function<std::string(std::string_view text, Tint tint)>;

/// Columns beyond the essential ones that do not fit into `width` are left out from the right, and named
/// below.
std::vector<std::string> table_lines(const bench::results::Table& table, int width, const Paint& paint);

}  // namespace dlrun::cli
