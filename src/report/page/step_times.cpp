#include "src/report/page/step_times.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/json.hpp"
#include "src/report/page/figure.hpp"

namespace dlrun::report {
namespace {

constexpr std::size_t kSlowestShown = 10;
constexpr double kUnknown = -1;

struct Times {
  std::vector<double> when;
  std::vector<std::vector<double>> seconds;  // by event, by rank
  std::size_t ranks = 0;
};

Times read(const std::vector<LinkEvents>& links) {
  Times out;
  for (const LinkEvents& link : links)
    for (const Json& event : link.events) {
      if (field<std::string>(event, "event", "").value_or("") != "step_times") continue;
      const Json when = seconds_of(event, "time");
      const auto found = event.find("seconds");
      if (when.is_null() || found == event.end() || !found->is_array()) continue;
      std::vector<double> of_ranks;
      for (const Json& each : *found) of_ranks.push_back(each.is_number() ? each.get<double>() : kUnknown);
      out.ranks = std::max(out.ranks, of_ranks.size());
      out.when.push_back(when.get<double>());
      out.seconds.push_back(std::move(of_ranks));
    }
  return out;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return kUnknown;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// From where to where part `index` of `parts` goes.
struct Part {
  std::size_t from, to;
};
Part part_of(std::size_t size, std::size_t parts, std::size_t index) {
  return {size * index / parts, size * (index + 1) / parts};
}

double longest(const Times& times, Part ranks, Part events) {
  double out = kUnknown;
  for (std::size_t event = events.from; event < events.to; ++event)
    for (std::size_t rank = ranks.from; rank < std::min(ranks.to, times.seconds[event].size()); ++rank)
      out = std::max(out, times.seconds[event][rank]);
  return out;
}

struct RankTime {
  std::size_t rank;
  double median, longest;
};

std::vector<RankTime> by_rank(const Times& times) {
  std::vector<RankTime> out;
  for (std::size_t rank = 0; rank < times.ranks; ++rank) {
    std::vector<double> own;
    for (const auto& event : times.seconds)
      if (rank < event.size() && event[rank] >= 0) own.push_back(event[rank]);
    if (own.empty()) continue;
    const double most = *std::max_element(own.begin(), own.end());
    out.push_back({rank, median_of(std::move(own)), most});
  }
  return out;
}

Json slowest_json(std::vector<RankTime> ranks) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankTime& one, const RankTime& other) { return one.median > other.median; });
  Json out = Json::array();
  for (std::size_t i = 0; i < std::min(ranks.size(), kSlowestShown); ++i)
    out.push_back({{"rank", ranks[i].rank},
                   {"median", figure(ranks[i].median)},
                   {"longest", figure(ranks[i].longest)}});
  return out;
}

// In tenths of a millisecond, whole: it is the largest part of the data.
Json cell(double seconds) {
  return seconds < 0 ? Json(nullptr) : Json(static_cast<std::int64_t>(std::llround(seconds * 1e4)));
}

}  // namespace

Json step_times_json(const std::vector<LinkEvents>& links, const PageLimits& limits) {
  const Times times = read(links);
  if (times.ranks == 0) return nullptr;
  const std::size_t rows = std::min(times.ranks, limits.heat_rows);
  const std::size_t columns = std::min(times.when.size(), limits.heat_columns);
  Json cells = Json::array(), when = Json::array();
  for (std::size_t row = 0; row < rows; ++row) {
    Json line = Json::array();
    for (std::size_t column = 0; column < columns; ++column)
      line.push_back(
          cell(longest(times, part_of(times.ranks, rows, row), part_of(times.when.size(), columns, column))));
    cells.push_back(std::move(line));
  }
  for (std::size_t column = 0; column < columns; ++column)
    when.push_back(times.when[part_of(times.when.size(), columns, column).to - 1]);
  std::vector<RankTime> ranks = by_rank(times);
  std::vector<double> medians;
  for (const RankTime& rank : ranks) medians.push_back(rank.median);
  return {{"ranks", times.ranks},
          {"times", std::move(when)},
          {"tenths_of_milliseconds", std::move(cells)},
          {"median", figure(median_of(std::move(medians)))},
          {"slowest", slowest_json(std::move(ranks))}};
}

}  // namespace dlrun::report
