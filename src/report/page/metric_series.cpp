#include "src/report/page/metric_series.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/json.hpp"
#include "src/report/page/downsample.hpp"
#include "src/report/page/figure.hpp"

namespace dlrun::report {
namespace {

struct GroupRow {
  std::string_view part;  // of the name
  enum class At { anywhere, end, whole } at;
  std::string_view group;
};
// The first row that fits a name has its group.
constexpr GroupRow kGroups[] = {
    {"seconds_per_step", GroupRow::At::whole, "step_time"},
    {"step_seconds", GroupRow::At::whole, "step_time"},
    {"learning_rate", GroupRow::At::anywhere, "learning_rate"},
    {"lr", GroupRow::At::whole, "learning_rate"},
    {"loss", GroupRow::At::anywhere, "loss"},
    {"perplexity", GroupRow::At::anywhere, "other"},
    {"accuracy", GroupRow::At::anywhere, "accuracy"},
    {"_acc", GroupRow::At::end, "accuracy"},
    {"acc", GroupRow::At::whole, "accuracy"},
    {"_per_s", GroupRow::At::end, "throughput"},
    {"_per_second", GroupRow::At::end, "throughput"},
    {"memory", GroupRow::At::anywhere, "memory"},
    {"_bytes", GroupRow::At::end, "memory"},
    {"energy", GroupRow::At::anywhere, "energy"},
    {"joules", GroupRow::At::anywhere, "energy"},
    {"watts", GroupRow::At::anywhere, "energy"},
    {"power", GroupRow::At::anywhere, "energy"},
    {"gpu", GroupRow::At::anywhere, "gpu"},
};

bool fits(const GroupRow& row, std::string_view name) {
  if (row.at == GroupRow::At::whole) return name == row.part;
  if (row.at == GroupRow::At::end) return name.ends_with(row.part);
  return name.find(row.part) != std::string_view::npos;
}

// The column with its rows in the order of the steps: a program of somebody else may write as it likes.
struct Points {
  std::vector<double> steps, values;
};

Points points_of(const MetricTable& metrics, const MetricColumn& column) {
  Points out;
  out.values = column.values;
  for (const std::uint32_t row : column.rows) out.steps.push_back(metrics.steps()[row]);
  if (std::is_sorted(out.steps.begin(), out.steps.end())) return out;
  std::vector<std::size_t> order(out.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t one, std::size_t other) { return out.steps[one] < out.steps[other]; });
  Points sorted;
  for (const std::size_t index : order) {
    sorted.steps.push_back(out.steps[index]);
    sorted.values.push_back(out.values[index]);
  }
  return sorted;
}

Json point_json(const Points& points, std::vector<double>::const_iterator value) {
  const auto index = static_cast<std::size_t>(value - points.values.begin());
  return {{"step", figure(points.steps[index])}, {"value", figure(*value)}};
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A noisy series of more points than these has its means too: a trend, where lines alone are a block of
// colour.
constexpr std::size_t kNoisy = 300, kMeans = 150;

// Of equal stretches, each at its middle.
Json means_json(const Points& points, std::size_t limit) {
  const std::size_t size = points.values.size(), parts = std::clamp<std::size_t>(limit / 2, 1, kMeans);
  if (size <= kNoisy) return nullptr;
  Json x = Json::array(), y = Json::array();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t from = size * part / parts, to = size * (part + 1) / parts;
    const auto begin = points.values.begin();
    const double sum = std::accumulate(begin + static_cast<std::ptrdiff_t>(from),
                                       begin + static_cast<std::ptrdiff_t>(to), 0.0);
    x.push_back(figure(points.steps[(from + to) / 2]));
    y.push_back(figure(sum / static_cast<double>(to - from)));
  }
  return {{"x", std::move(x)}, {"y", std::move(y)}};
}

Json one_series(const MetricColumn& column, const Points& points, std::size_t limit) {
  const auto& values = points.values;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Json x = Json::array(), y = Json::array();
  for (const std::size_t index : downsample(values, limit)) {
    x.push_back(figure(points.steps[index]));
    y.push_back(figure(values[index]));
  }
  return {{"name", column.name},
          {"group", group_of(column.name)},
          {"points", values.size()},
          {"first", point_json(points, values.begin())},
          {"last", point_json(points, values.end() - 1)},
          {"lowest", point_json(points, low)},
          {"highest", point_json(points, high)},
          {"median", figure(median_of(values))},
          {"x", std::move(x)},
          {"y", std::move(y)},
          {"mean", means_json(points, limit)}};
}

}  // namespace

std::string_view group_of(std::string_view name) {
  for (const GroupRow& row : kGroups)
    if (fits(row, name)) return row.group;
  return "other";
}

Json series_json(const MetricTable& metrics, const SeriesLimits& limits) {
  Json series = Json::array(), not_shown = Json::array();
  for (const MetricColumn& column : metrics.columns()) {
    if (column.values.empty()) continue;
    if (series.size() < limits.series)
      series.push_back(one_series(column, points_of(metrics, column), limits.points));
    else
      not_shown.push_back(column.name);
  }
  return {{"lines", metrics.lines()},
          {"unread_lines", metrics.unread()},
          {"repeated_lines", metrics.repeated()},
          {"series", std::move(series)},
          {"not_shown", std::move(not_shown)}};
}

}  // namespace dlrun::report
