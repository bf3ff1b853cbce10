#include "src/report/diff/diff.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/strings.hpp"

namespace dlrun::report {
namespace {

// Shorter differences of times are the noise of a machine.
constexpr double kSecondsOfNoise = 1;

void replace_all(std::string& text, const std::string& what, std::string_view by) {
  if (what.empty()) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

// A run's own names, in its paths and variables.
Json without_own_names(Json value, const DiffRun& run) {
  if (value.is_structured()) {
    for (Json& each : value) each = without_own_names(std::move(each), run);
    return value;
  }
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  replace_all(text, field<std::string>(run.plan, "run_directory", "").value_or(""), "RUN");
  replace_all(text, field<std::string>(run.plan, "job_id", "").value_or(""), "ID");
  return text;
}

bool is_about(const std::string& name, double a, double b, double margin) {
  const double difference = std::abs(a - b);
  if (name.starts_with("seconds") && name != "seconds per step" && difference < kSecondsOfNoise) return true;
  return difference <= margin * std::max(std::abs(a), std::abs(b));
}

std::optional<Difference> compared(std::string_view section, const std::string& name, const Json& a,
                                   const Json& b, double margin) {
  Difference out{std::string(section), name, a, b};
  if (a.is_number() && b.is_number() && is_measured(name)) {
    const double before = a.get<double>(), after = b.get<double>();
    if (is_about(name, before, after, margin)) return std::nullopt;
    if (before != 0) out.ratio = after / before;
    return out;
  }
  return a == b ? std::nullopt : std::optional(std::move(out));
}

void compare_section(std::string_view section, const DiffValues& a, const DiffValues& b, double margin,
                     std::vector<Difference>& out) {
  std::vector<Difference> only_in_one;
  DiffValues names = a;
  names.insert(b.begin(), b.end());
  for (const auto& entry : names) {
    const auto in_a = a.find(entry.first), in_b = b.find(entry.first);
    const Json nothing;
    auto found = compared(section, entry.first, in_a == a.end() ? nothing : in_a->second,
                          in_b == b.end() ? nothing : in_b->second, margin);
    if (!found) continue;
    (in_a == a.end() || in_b == b.end() ? only_in_one : out).push_back(std::move(*found));
  }
  std::move(only_in_one.begin(), only_in_one.end(), std::back_inserter(out));
}

DiffValues own(const DiffValues& values, const DiffRun& run) {
  DiffValues out;
  for (const auto& [name, value] : values) out[name] = without_own_names(value, run);
  return out;
}

Json side(const DiffRun& run) {
  return {{"directory", run.path.string()},
          {"exit_code", field<Json>(run.record, "exit_code", "").value_or(Json())},
          {"problems", run.problems}};
}

}  // namespace

bool is_measured(std::string_view name) {
  return name.find("seconds") != name.npos || name.find("per_s") != name.npos || name.ends_with("_ms") ||
         name.ends_with("_s") || name.find("joules") != name.npos;
}

RunDiff diff_of(const DiffRun& a, const DiffRun& b, double margin) {
  RunDiff out;
  for (const DiffSection& section : diff_sections()) {
    const auto of_a = section.values(a), of_b = section.values(b);
    if (of_a && of_b)
      compare_section(section.name, own(*of_a, a), own(*of_b, b), margin, out.differences);
    else if (of_a || of_b)
      out.unknown.push_back({std::string(section.name), !of_a, !of_b});
  }
  return out;
}

Json to_json(const RunDiff& diff, const DiffRun& a, const DiffRun& b) {
  Json differences = Json::array(), unknown = Json::array();
  for (const Difference& each : diff.differences)
    differences.push_back({{"section", each.section},
                           {"name", each.name},
                           {"a", each.a},
                           {"b", each.b},
                           {"ratio", each.ratio ? Json(*each.ratio) : Json(nullptr)}});
  for (const UnknownSection& each : diff.unknown)
    unknown.push_back({{"section", each.section}, {"run", each.a ? "a" : "b"}});
  return {{"schema", "dlrun.diff/1"},
          {"a", side(a)},
          {"b", side(b)},
          {"same", diff.differences.empty() && is_whole(a) && is_whole(b)},
          {"differences", std::move(differences)},
          {"unknown", std::move(unknown)}};
}

}  // namespace dlrun::report
