#include "src/cli/bench_lines.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/strings.hpp"
#include "src/cli/terminal_text.hpp"

namespace dlrun::cli {
namespace {

using bench::results::Column;
using bench::results::Mark;
using bench::results::Table;
using bench::results::TableCell;

constexpr int kGap = 2;

std::string shown(const TableCell& cell) {
  return plain_text(cell.text);
}

std::vector<int> widths_of(const Table& table) {
  std::vector<int> out;
  for (const Column& column : table.columns) out.push_back(columns_of(plain_text(column.name)));
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i) out[i] = std::max(out[i], columns_of(shown(row[i])));
  return out;
}

// How many columns fit, of which the essential ones always do.
std::size_t fitting(const std::vector<int>& widths, std::size_t essential, int width) {
  std::size_t count = widths.size();
  const auto needed = [&] {
    return std::accumulate(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(count), 0) +
           kGap * (static_cast<int>(count) - 1);
  };
  while (count > essential && count > 1 && needed() > width) --count;
  return count;
}

std::string padded(const std::string& text, const std::string& painted, int width, Column::Kind kind) {
  const std::string space(static_cast<std::size_t>(std::max(width - columns_of(text), 0)), ' ');
  return kind == Column::Kind::number ? space + painted : painted + space;
}

std::string without_trailing_space(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string head_line(const Table& table, const std::vector<int>& widths, std::size_t count,
                      const Paint& paint) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = plain_text(table.columns[i].name);
    out += (i == 0 ? "" : std::string(kGap, ' ')) +
           padded(name, paint(name, Tint::bold), widths[i], table.columns[i].kind);
  }
  return without_trailing_space(std::move(out));
}

std::string painted_cell(const TableCell& cell, const Paint& paint) {
  switch (cell.mark) {
    case Mark::best:
      return paint(shown(cell), Tint::green);
    case Mark::failed:
      return paint(shown(cell), Tint::red);
    case Mark::none:
      return shown(cell);
  }
  return shown(cell);
}

std::string row_line(const Table& table, const std::vector<TableCell>& row, const std::vector<int>& widths,
                     std::size_t count, const Paint& paint) {
  std::string out;
  for (std::size_t i = 0; i < std::min(count, row.size()); ++i)
    out += (i == 0 ? "" : std::string(kGap, ' ')) +
           padded(shown(row[i]), painted_cell(row[i], paint), widths[i], table.columns[i].kind);
  return without_trailing_space(std::move(out));
}

std::string left_out(const Table& table, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = count; i < table.columns.size(); ++i)
    names.push_back(plain_text(table.columns[i].name));
  return "not shown, as the terminal is too narrow: " + join(names, ", ");
}

}  // namespace

std::vector<std::string> table_lines(const Table& table, int width, const Paint& paint) {
  const std::vector<int> widths = widths_of(table);
  const std::size_t count = fitting(widths, table.essential, width);
  std::vector<std::string> out{plain_text(table.title), head_line(table, widths, count, paint)};
  for (const auto& row : table.rows) out.push_back(row_line(table, row, widths, count, paint));
  if (count < table.columns.size()) out.push_back(left_out(table, count));
  for (const std::string& note : table.notes) out.push_back(plain_text(note));
  return out;
}

}  // namespace dlrun::cli
