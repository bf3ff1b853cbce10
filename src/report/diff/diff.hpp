// What differs between two runs, as values. Pure. A run's own names (its directory, its id) are no
// difference. Measured values are equal within a margin, all others where they are the same. What one of the
// two does not tell is unknown, and no difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/report/diff/sections.hpp"

namespace dlrun::report {

struct Difference {
  std::string section, name;
  Json a, b;                         // null: it is not there
  std::optional<double> ratio = {};  // b / a, of measured values
};

struct UnknownSection {
  std::string section;
  bool a = false, b = false;  // which of them does not tell
};

struct RunDiff {
  std::vector<Difference> differences;  // the most telling first
  std::vector<UnknownSection> unknown;  // that one of the two tells and the other does not
};

/// `margin`: 0.1 takes measured values within 10 % as equal.
RunDiff diff_of(const DiffRun& a, const DiffRun& b, double margin);

/// Whether values of this name are measured: seconds, rates.
bool is_measured(std::string_view name);

/// dlrun.diff/1.
Json to_json(const RunDiff& diff, const DiffRun& a, const DiffRun& b);

}  // namespace dlrun::report
