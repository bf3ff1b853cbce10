// Predictions as a table, and as a document.
#include <algorithm>

#include "src/bench/predict/predict.hpp"

namespace dlrun::bench::predict {
namespace {

std::string range_text(const Range& range) {
  return results::short_number(range.low) + " to " + results::short_number(range.high);
}

Json range_json(const Range& range) {
  return {{"mean", range.mean}, {"low", range.low}, {"high", range.high}};
}

}  // namespace

results::Table table_of(const Forecast& forecast) {
  using results::Column;
  const auto any = [&](auto has) {
    return std::any_of(forecast.predictions.begin(), forecast.predictions.end(), has);
  };
  const bool series = any([](const Prediction& each) { return !each.series.empty(); });
  const bool servers = any([](const Prediction& each) { return each.servers > 0; });
  results::Table out{.title = "predicted " + forecast.unit, .columns = {}, .rows = {}, .notes = {}};
  if (series) out.columns.push_back({"series", Column::Kind::text});
  out.columns.insert(out.columns.end(), {{"nodes"}, {"algorithm", Column::Kind::text}});
  if (servers) out.columns.push_back({"servers"});
  out.columns.insert(out.columns.end(),
                     {{forecast.unit}, {"range"}, {"efficiency"}, {"bound by", Column::Kind::text}});
  out.essential = out.columns.size();
  for (const Prediction& each : forecast.predictions) {
    auto& row = out.rows.emplace_back();
    if (series) row.push_back({each.series});
    row.push_back({results::short_number(each.nodes)});
    row.push_back({std::string(name_of(each.algorithm))});
    if (servers) row.push_back({each.servers > 0 ? results::short_number(each.servers) : "-"});
    row.push_back({results::short_number(each.rate.mean)});
    row.push_back({range_text(each.rate)});
    row.push_back({results::percent(each.efficiency.mean)});
    row.push_back({each.reason});
  }
  for (const std::string& text : forecast.assumptions) out.notes.push_back("assumed: " + text);
  return out;
}

Json to_json(const Forecast& forecast) {
  Json out{{"schema", "dlrun.bench-predict/1"},
           {"unit", forecast.unit},
           {"predictions", Json::array()},
           {"assumptions", forecast.assumptions}};
  for (const Prediction& each : forecast.predictions)
    out["predictions"].push_back({{"series", each.series},
                                  {"nodes", each.nodes},
                                  {"algorithm", name_of(each.algorithm)},
                                  {"servers", each.servers > 0 ? Json(each.servers) : Json()},
                                  {"rate", range_json(each.rate)},
                                  {"efficiency", range_json(each.efficiency)},
                                  {"bound_by", each.reason}});
  return out;
}

}  // namespace dlrun::bench::predict
