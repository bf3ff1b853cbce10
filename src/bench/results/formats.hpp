// A table as text in a format that another program reads: CSV, JSON, Markdown, LaTeX, HTML. Each escapes what
// has a meaning in it, so that no value of a job file or of an error text becomes markup. The terminal's form
// is src/cli's.
#pragma once

#include <string>
#include <string_view>

#include "src/bench/results/table.hpp"

namespace dlrun::bench::results {

/// RFC 4180, a row per cell, numbers with all digits: for spreadsheets and notebooks.
std::string csv_text(const Bench& bench, const std::vector<Cell>& cells);
/// Any table as CSV, its texts as they are shown.
std::string csv_text(const Table& table);
/// dlrun.bench-table/1: cells with their values, statistics and what follows from them.
Json cells_json(const Bench& bench, const std::vector<Cell>& cells);
/// GitHub's tables.
std::string markdown_text(const Table& table);
/// A page of its own, which needs no network; `style` is CSS.
std::string html_text(const Table& table, std::string_view style);
/// A table environment with booktabs; it needs \usepackage{booktabs}.
std::string latex_text(const Table& table);

std::string markdown_escaped(std::string_view text);
std::string latex_escaped(std::string_view text);

}  // namespace dlrun::bench::results
