#include "src/report/page/metric_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "src/base/json.hpp"

namespace dlrun::report {
namespace {

constexpr std::string_view kSecondsPerStep = "seconds_per_step";
// What a line has beside figures: where it is in the run.
constexpr std::string_view kPosition[] = {"steps", "epoch", "epochs"};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool take(char wanted) {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  // A key without escapes.
  bool key(std::string_view& out) {
    if (!take('"')) return false;
    const char* const begin = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    return take('"');
  }
  bool number(double& out) {
    while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ == end_ || !(*at_ == '-' || (*at_ >= '0' && *at_ <= '9'))) return false;
    const auto read = std::from_chars(at_, end_, out);
    at_ = read.ptr;
    return read.ec == std::errc();
  }
  bool at_end() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\r')) ++at_;
    return at_ == end_;
  }

 private:
  const char *at_, *end_;
};

}  // namespace

void MetricTable::take(std::string_view key, double value, Row& row) {
  if (key == "step")
    row.step = value;
  else if (key == "time")
    row.time = value;
  else if (std::find(std::begin(kPosition), std::end(kPosition), key) == std::end(kPosition))
    row.figures.emplace_back(key, value);
}

// False: it has more than plain numbers.
bool MetricTable::scan(std::string_view line, Row& row) {
  Scanner scanner(line);
  if (!scanner.take('{')) return false;
  do {
    std::string_view key;
    double value = 0;
    if (!scanner.key(key) || !scanner.take(':') || !scanner.number(value)) return false;
    take(key, value, row);
  } while (scanner.take(','));
  return scanner.take('}') && scanner.at_end();
}

bool MetricTable::parse(std::string_view line, Row& row, std::vector<std::string>& names) {
  const auto json = parse_json(line, "metrics.jsonl");
  if (!json || !json->is_object()) return false;
  names.clear();
  names.reserve(json->size());  // their addresses stay
  for (const auto& [key, value] : json->items())
    if (value.is_number()) take(names.emplace_back(key), value.get<double>(), row);
  return true;
}

void MetricTable::begin_file() {
  first_of_file_ = true;
  last_step_ = last_time_ = -1;
}

void MetricTable::add_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  row_.step = row_.time = -1;
  row_.figures.clear();
  bool good = scan(line, row_);
  if (!good) {
    row_.step = row_.time = -1;
    row_.figures.clear();
    good = parse(line, row_, names_);
  }
  if (!good || row_.step < 0 || !std::isfinite(row_.step)) {
    ++unread_;
    return;
  }
  ++lines_;
  if (std::exchange(first_of_file_, false)) drop_from(row_.step);
  add_row(row_);
}

void MetricTable::add_row(const Row& row) {
  steps_.push_back(row.step);
  std::size_t hint = 0;
  for (const auto& [key, value] : row.figures) put(key, hint++, value);
  if (row.time >= 0) add_seconds_per_step(row);
}

// From line to line, so it includes evaluation and checkpoints.
void MetricTable::add_seconds_per_step(const Row& row) {
  if (last_time_ >= 0 && row.step > last_step_ && row.time >= last_time_)
    put(kSecondsPerStep, columns_.size(), (row.time - last_time_) / (row.step - last_step_));
  last_step_ = row.step, last_time_ = row.time;
}

void MetricTable::put(std::string_view name, std::size_t hint, double value) {
  if (!std::isfinite(value)) return;
  MetricColumn& to = column(name, hint);
  to.rows.push_back(static_cast<std::uint32_t>(steps_.size() - 1));
  to.values.push_back(value);
}

// Lines have their keys in the same order: `hint` is most often right.
MetricColumn& MetricTable::column(std::string_view name, std::size_t hint) {
  if (hint < columns_.size() && columns_[hint].name == name) return columns_[hint];
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const MetricColumn& each) { return each.name == name; });
  if (found != columns_.end()) return *found;
  columns_.push_back({std::string(name), {}, {}});
  return columns_.back();
}

void MetricTable::drop_from(double step) {
  std::size_t kept = steps_.size();
  while (kept > 0 && steps_[kept - 1] >= step) --kept;
  repeated_ += steps_.size() - kept;
  steps_.resize(kept);
  for (MetricColumn& each : columns_) {
    while (!each.rows.empty() && each.rows.back() >= kept) each.rows.pop_back();
    each.values.resize(each.rows.size());
  }
}

}  // namespace dlrun::report
