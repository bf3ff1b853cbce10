// MetricTable: metrics.jsonl as columns of numbers, one row per line. It reads a million lines in less than a
// second, so it scans lines of plain numbers itself and gives all others to the JSON parser. A line that is
// not JSON, or has no step, is counted and left out: a run that was killed tears its last line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::report {

struct MetricColumn {
  std::string name;
  std::vector<std::uint32_t> rows;  // of which lines
  std::vector<double> values;
};

class MetricTable {
 public:
  /// The next lines are those of another file, of a link that resumed: rows that claim its first step or a
  /// later one are dropped, since it does the steps behind the last checkpoint again.
  void begin_file();
  void add_line(std::string_view line);

  const std::vector<double>& steps() const { return steps_; }
  const std::vector<MetricColumn>& columns() const { return columns_; }
  std::size_t lines() const { return lines_; }        // that were read
  std::size_t unread() const { return unread_; }      // that were not
  std::size_t repeated() const { return repeated_; }  // that a later link did again

 private:
  struct Row {
    double step = -1, time = -1;
    std::vector<std::pair<std::string_view, double>> figures;
  };
  static bool scan(std::string_view line, Row& row);
  static bool parse(std::string_view line, Row& row, std::vector<std::string>& names);
  static void take(std::string_view key, double value, Row& row);
  void add_row(const Row& row);
  void add_seconds_per_step(const Row& row);
  void drop_from(double step);
  MetricColumn& column(std::string_view name, std::size_t hint);
  void put(std::string_view name, std::size_t hint, double value);

  std::vector<double> steps_;
  std::vector<MetricColumn> columns_;
  Row row_;  // kept for its memory
  std::vector<std::string> names_;
  bool first_of_file_ = true;
  double last_step_ = -1, last_time_ = -1;
  std::size_t lines_ = 0, unread_ = 0, repeated_ = 0;
};

}  // namespace dlrun::report
