// Compares two benches cell by cell: which cells changed beyond noise. Where a cell has repeats, a t test
// decides (Welch's, where both have some) at p < 0.01; where it ran once, three standard errors of the mean
// step, at least 5 %; where not even the steps are known, 10 %. A change below the margin is never one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/results/table.hpp"

namespace dlrun::bench::results {

enum class Verdict { same, better, worse, now_fails, fixed, only_old, only_new, unknown };

struct CellChange {
  std::vector<Json> values;  // of the new bench's axes
  Verdict verdict = Verdict::unknown;
  std::optional<Statistics> before = {}, after = {};
  std::optional<double> ratio = {};  // after / before
  std::optional<double> p = {};      // of the t test
  std::string test = {};             // which one decided
};

struct Comparison {
  std::string quantity;  // "images/s", "test_accuracy"
  std::vector<CellChange> changes;
};

/// An Error (input) where the two have other axes or another quantity. `margin`: 0.02 is 2 %.
Result<Comparison> compare(const Bench& before, const Bench& after, double margin);

/// Whether a cell became worse, or fails now.
bool has_regression(const Comparison& comparison);

Table table_of(const Bench& after, const Comparison& comparison);
/// dlrun.bench-compare/1.
Json to_json(const Bench& after, const Comparison& comparison);

std::string_view name_of(Verdict verdict);

}  // namespace dlrun::bench::results
