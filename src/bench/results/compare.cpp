#include "src/bench/results/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/enum_names.hpp"
#include "src/bench/results/student.hpp"

namespace dlrun::bench::results {
namespace {

constexpr double kLevel = 0.01, kStandardErrors = 3, kLeastOfOneRun = 0.05, kWithoutSteps = 0.10;

constexpr auto kVerdicts = enum_names<Verdict>({{Verdict::same, "same"},
                                                {Verdict::better, "better"},
                                                {Verdict::worse, "worse"},
                                                {Verdict::now_fails, "fails now"},
                                                {Verdict::fixed, "failed before"},
                                                {Verdict::only_old, "only in the old bench"},
                                                {Verdict::only_new, "only in the new bench"},
                                                {Verdict::unknown, "not measured"}});

using Key = std::map<std::string, std::string>;  // the order of the axes does not matter

Key key_of(const Bench& bench, const Cell& cell) {
  Key out;
  for (std::size_t i = 0; i < bench.axes.size(); ++i) out[bench.axes[i].key] = to_text(cell.values[i]);
  return out;
}

std::optional<Statistics> quantity_of(const Cell& cell, const std::string& metric) {
  if (metric.empty()) return cell.rate;
  const auto found = cell.metrics.find(metric);
  return found == cell.metrics.end() ? std::nullopt : std::optional(found->second);
}

// Whether two means differ, and how this was decided.
struct Decision {
  bool differs = false;
  std::optional<double> p = {};
  std::string test;
};

Decision welch(const Statistics& a, const Statistics& b) {
  const double va = a.std * a.std / a.n, vb = b.std * b.std / b.n;
  Decision out{.test = "Welch's t test"};
  if (va + vb == 0) {
    out.p = a.mean == b.mean ? 1 : 0;
  } else {
    const double degrees = (va + vb) * (va + vb) / (va * va / (a.n - 1) + vb * vb / (b.n - 1));
    out.p = two_sided_p((a.mean - b.mean) / std::sqrt(va + vb), degrees);
  }
  out.differs = *out.p < kLevel;
  return out;
}

// One run against repeats, whose deviation is then that of both.
Decision one_against(const Statistics& repeats, double value) {
  Decision out{.test = "t test of one run against repeats"};
  const double error = repeats.std * std::sqrt(1 + 1.0 / repeats.n);
  out.p = error == 0 ? (value == repeats.mean ? 1 : 0)
                     : two_sided_p((value - repeats.mean) / error, repeats.n - 1);
  out.differs = *out.p < kLevel;
  return out;
}

// Of the mean step, as a share of it.
std::optional<double> step_error(const Cell& cell) {
  if (!cell.step || cell.step->n < 2 || cell.step->mean <= 0) return std::nullopt;
  return cell.step->std / cell.step->mean / std::sqrt(static_cast<double>(cell.step->n));
}

Decision one_run_each(const Cell& before, const Cell& after, double change) {
  const auto a = step_error(before), b = step_error(after);
  if (!a || !b) return {.differs = change > kWithoutSteps, .test = "a threshold of 10 %"};
  const double threshold = std::max(kStandardErrors * std::hypot(*a, *b), kLeastOfOneRun);
  return {.differs = change > threshold,
          .test = fmt::format("a threshold of {} from the steps", percent(threshold))};
}

Decision decide(const Cell& before, const Cell& after, const Statistics& a, const Statistics& b,
                double change) {
  if (a.n > 1 && b.n > 1) return welch(a, b);
  if (a.n > 1) return one_against(a, b.mean);
  if (b.n > 1) return one_against(b, a.mean);
  return one_run_each(before, after, change);
}

bool is_over(const Cell& cell) {
  return cell.status != Status::pending && cell.status != Status::running;
}

Verdict without_values(const Cell& before, const Cell& after, const CellChange& change) {
  if (change.before && is_over(after) && after.status != Status::done) return Verdict::now_fails;
  if (change.after && is_over(before) && before.status != Status::done) return Verdict::fixed;
  return Verdict::unknown;
}

void judge(const Cell& before, const Cell& after, const std::string& metric, double margin,
           CellChange& change) {
  change.before = quantity_of(before, metric);
  change.after = quantity_of(after, metric);
  if (!change.before || !change.after) {
    change.verdict = without_values(before, after, change);
    return;
  }
  const Statistics &a = *change.before, &b = *change.after;
  if (a.mean != 0) change.ratio = b.mean / a.mean;
  const double size = change.ratio ? std::abs(*change.ratio - 1) : b.mean == 0 ? 0 : 1;
  const Decision decision = decide(before, after, a, b, size);
  change.p = decision.p;
  change.test = decision.test;
  const bool up = metric.empty() || larger_is_better(metric) ? b.mean > a.mean : b.mean < a.mean;
  change.verdict = !decision.differs || size <= margin ? Verdict::same
                   : up                                ? Verdict::better
                                                       : Verdict::worse;
}

std::vector<Json> values_by(const Bench& order, const Bench& bench, const Cell& cell) {
  std::vector<Json> out;
  for (const Axis& axis : order.axes)
    for (std::size_t i = 0; i < bench.axes.size(); ++i)
      if (bench.axes[i].key == axis.key) out.push_back(cell.values[i]);
  return out;
}

Result<void> check_axes(const Bench& one, const Bench& other, const char* name) {
  for (const Axis& axis : one.axes)
    if (std::none_of(other.axes.begin(), other.axes.end(),
                     [&](const Axis& each) { return each.key == axis.key; }))
      return bad_input("", fmt::format("only the {} bench has the axis '{}'", name, axis.key),
                       "compare benches with the same axes");
  return {};
}

Result<std::string> metric_to_compare(const Bench& before, const Bench& after,
                                      const std::vector<Cell>& cells) {
  if (before.mode != after.mode)
    return bad_input("", "one bench measured rates, the other one metrics of trainings");
  if (before.mode == Mode::metrics) return main_metric(cells);
  if (before.unit != after.unit)
    return bad_input("", fmt::format("rates in '{}' and in '{}'", before.unit, after.unit));
  return std::string();
}

Mark mark_of(Verdict verdict) {
  if (verdict == Verdict::worse || verdict == Verdict::now_fails) return Mark::failed;
  return verdict == Verdict::better ? Mark::best : Mark::none;
}

std::string value_or_dash(const std::optional<Statistics>& value) {
  return value ? with_deviation(*value) : "-";
}

std::string summary(const Comparison& comparison) {
  std::map<Verdict, std::size_t> counts;
  for (const CellChange& change : comparison.changes) ++counts[change.verdict];
  std::string out;
  for (const auto& [verdict, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name_of(verdict));
  return "cells: " + (out.empty() ? "none" : out);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  return kVerdicts.name(verdict);
}

Result<Comparison> compare(const Bench& before, const Bench& after, double margin) {
  TRY(check_axes(before, after, "old"));
  TRY(check_axes(after, before, "new"));
  const auto old_cells = cells_of(before), new_cells = cells_of(after);
  const std::string metric = TRY(metric_to_compare(before, after, new_cells));
  Comparison out{.quantity = metric.empty() ? after.unit : metric, .changes = {}};
  std::map<Key, const Cell*> known;
  for (const Cell& cell : old_cells) known[key_of(before, cell)] = &cell;
  for (const Cell& cell : new_cells) {
    CellChange change{.values = cell.values};
    if (const auto found = known.extract(key_of(after, cell)); !found.empty()) {
      judge(*found.mapped(), cell, metric, margin, change);
    } else {
      change.verdict = Verdict::only_new;
      change.after = quantity_of(cell, metric);
    }
    out.changes.push_back(std::move(change));
  }
  for (const Cell& cell : old_cells)
    if (known.contains(key_of(before, cell)))
      out.changes.push_back({.values = values_by(after, before, cell),
                             .verdict = Verdict::only_old,
                             .before = quantity_of(cell, metric)});
  return out;
}

bool has_regression(const Comparison& comparison) {
  return std::any_of(comparison.changes.begin(), comparison.changes.end(), [](const CellChange& change) {
    return change.verdict == Verdict::worse || change.verdict == Verdict::now_fails;
  });
}

Table table_of(const Bench& after, const Comparison& comparison) {
  Table out{.title = (comparison.quantity.empty() ? "rate" : comparison.quantity) + ", old and new",
            .columns = {},
            .rows = {},
            .notes = {}};
  for (const Axis& axis : after.axes)
    out.columns.push_back({std::string(last_name(axis.key)), Column::Kind::text});
  for (const char* name : {"old", "new", "change", "p"}) out.columns.push_back({name});
  out.columns.push_back({"verdict", Column::Kind::text});
  out.essential = out.columns.size();
  std::map<std::string, std::size_t> tests;
  for (const CellChange& change : comparison.changes) {
    auto& row = out.rows.emplace_back();
    for (const Json& value : change.values) row.push_back({value_text(value)});
    row.push_back({value_or_dash(change.before)});
    row.push_back({value_or_dash(change.after)});
    row.push_back({change.ratio ? fmt::format("{:+.1f} %", 100 * (*change.ratio - 1)) : "-"});
    row.push_back({change.p ? fmt::format("{:.2g}", *change.p) : "-"});
    row.push_back({std::string(name_of(change.verdict)), mark_of(change.verdict)});
    if (!change.test.empty()) ++tests[change.test];
  }
  out.notes.push_back(summary(comparison));
  for (const auto& [test, count] : tests)
    out.notes.push_back(fmt::format("decided by {}: {} {}", test, count, count == 1 ? "cell" : "cells"));
  return out;
}

Json to_json(const Bench& after, const Comparison& comparison) {
  Json out{{"schema", "dlrun.bench-compare/1"},
           {"quantity", comparison.quantity},
           {"regression", has_regression(comparison)},
           {"cells", Json::array()}};
  for (const CellChange& change : comparison.changes) {
    Json values = Json::object();
    for (std::size_t i = 0; i < after.axes.size() && i < change.values.size(); ++i)
      values[after.axes[i].key] = change.values[i];
    out["cells"].push_back({{"values", std::move(values)},
                            {"verdict", name_of(change.verdict)},
                            {"old", statistics_json(change.before)},
                            {"new", statistics_json(change.after)},
                            {"ratio", change.ratio ? Json(*change.ratio) : Json()},
                            {"p", change.p ? Json(*change.p) : Json()},
                            {"test", change.test}});
  }
  return out;
}

}  // namespace dlrun::bench::results
