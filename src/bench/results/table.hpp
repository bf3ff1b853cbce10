// Table: the cells of a bench as rows of texts, in the form in which papers print them, with notes below.
// What shows it (a terminal, Markdown, LaTeX, a page) only lays it out. A cell that failed says so in its
// place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/bench/results/cells.hpp"

namespace dlrun::bench::results {

enum class Mark { none, best, failed };

struct Column {
  enum class Kind { text, number };
  std::string name;
  Kind kind = Kind::number;
};

struct TableCell {
  std::string text;
  Mark mark = Mark::none;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::size_t essential = 0;  // the first columns, which no narrow terminal loses
  std::vector<std::vector<TableCell>> rows;
  std::vector<std::string> notes;  // what was found, and why cells failed
};

/// A row per cell.
Table table_of(const Bench& bench, const std::vector<Cell>& cells);
/// The values of one axis as columns: the rate, or the main metric. An Error (usage) where there is no such
/// axis.
Result<Table> table_across(const Bench& bench, const std::vector<Cell>& cells, const std::string& axis);

/// Four significant digits: "1234", "12.34", "0.001234".
std::string short_number(double value);
/// "1234 ± 5"; without the deviation where there is one value.
std::string with_deviation(const Statistics& value);
/// "92.1 %".
std::string percent(double share);

}  // namespace dlrun::bench::results
