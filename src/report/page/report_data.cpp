#include "src/report/page/report_data.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/json.hpp"
#include "src/base/version.hpp"
#include "src/report/page/event_marks.hpp"
#include "src/report/page/metric_series.hpp"
#include "src/report/page/plan_map.hpp"
#include "src/report/page/step_times.hpp"
#include "src/report/page/time_rows.hpp"

namespace dlrun::report {
namespace {

constexpr std::size_t kFewestPoints = 16;
constexpr std::size_t kMaxProblems = 20;

Json at(const Json& object, const char* name) {
  return object.is_object() ? object.value(name, Json()) : Json();
}

std::vector<LinkEvents> events_of(const RunFiles& run) {
  std::vector<LinkEvents> out;
  for (std::size_t i = 0; i < run.links.size(); ++i)
    out.push_back({static_cast<int>(i) + 1, run.links[i].events});
  return out;
}

// The newest link that has such a file.
const Json& newest(const RunFiles& run, Json LinkFiles::*file) {
  static const Json none;
  for (auto link = run.links.rbegin(); link != run.links.rend(); ++link)
    if (!((*link).*file).is_null()) return (*link).*file;
  return none;
}

std::string state_of(const RunFiles& run) {
  if (run.chain) return std::string(job::word_of(run.chain->state));
  const Json code = at(newest(run, &LinkFiles::record), "exit_code");
  if (!code.is_number_integer()) return "no record";
  if (code == 0) return "done";
  return code == to_int(ExitCode::again) ? "stopped" : "failed";
}

// What the job asks for. Values of its environment stay where they are: a report is a file to be shown.
Json job_json(const Json& spec) {
  Json out = Json::object();
  for (const char* name :
       {"resources", "roles", "command", "checkpoint", "chain", "launch", "parallel", "train"})
    if (const Json value = at(spec, name); !value.is_null() && !value.empty()) out[name] = value;
  return out;
}

// Without the lists that dlrun diff compares: all libraries, packages, variables. Nodes by their names.
Json provenance_json(Json provenance) {
  if (!provenance.is_object()) return provenance;
  if (const Json nodes = at(provenance, "nodes"); nodes.is_array()) {
    provenance["nodes"] = Json::object();
    for (Json node : nodes) {
      const std::string hosts = field<std::string>(node, "hosts", "provenance").value_or("?");
      node.erase("hosts");
      provenance["nodes"][hosts] = std::move(node);
    }
  }
  if (Json& program = provenance["program"]; program.is_object()) {
    for (const char* list : {"libraries", "variables"}) program.erase(list);
    if (const Json python = at(program, "python"); python.is_object())
      program["python"] = at(python, "version");
  }
  return provenance;
}

// Of the last attempt; its epochs are in metrics.jsonl as they came.
Json energy_json(const Json& attempts) {
  if (!attempts.is_array() || attempts.empty()) return nullptr;
  Json out = at(attempts.back(), "energy");
  if (out.is_object()) out.erase("per_epoch");
  return out;
}

Json last_attempt_ranks(const RunFiles& run) {
  const Json attempts = at(run.links.empty() ? Json() : run.links.back().record, "attempts");
  return attempts.empty() ? Json() : at(attempts.back(), "ranks");
}

Json problems_json(const RunFiles& run) {
  Json out = Json::array();
  for (const std::string& problem : run.problems)
    if (out.size() < kMaxProblems) out.push_back(problem);
  return out;
}

Json first_of(const Json& one, const Json& other) {
  return one.is_null() ? other : one;
}

PageLimits narrower(PageLimits limits) {
  limits.series.points /= 2;
  limits.ranks = limits.ranks * 2 / 3;
  limits.events = limits.events * 2 / 3;
  limits.checkpoints = limits.checkpoints * 2 / 3;
  limits.heat_rows = std::max<std::size_t>(limits.heat_rows * 2 / 3, 8);
  limits.heat_columns = std::max<std::size_t>(limits.heat_columns * 2 / 3, 8);
  return limits;
}

}  // namespace

Json run_json(const RunFiles& run, const PageLimits& limits) {
  const Json &plan = newest(run, &LinkFiles::plan), &record = newest(run, &LinkFiles::record);
  const auto events = events_of(run);
  Json links = links_json(run);
  Json time = total_time_json(links);
  return {
      {"name", run.chain ? Json(run.chain->name) : first_of(at(plan, "name"), at(record, "name"))},
      {"kind", run.chain ? "chain" : "run"},
      {"directory", run.path.string()},
      {"state", state_of(run)},
      {"reason", run.chain && !run.chain->reason.empty() ? Json(run.chain->reason) : at(record, "reason")},
      {"exit_code", at(record, "exit_code")},
      {"id", first_of(at(plan, "job_id"), at(record, "job_id"))},
      {"framework", first_of(at(plan, "framework"), at(record, "framework"))},
      {"scheduler", run.chain ? Json(run.chain->scheduler) : at(record, "scheduler")},
      {"mpi", at(plan, "mpi")},
      {"result", at(record, "result")},
      {"last_progress", at(record, "last_progress")},
      {"energy", at(record, "energy")},
      {"time", std::move(time)},
      {"links", std::move(links)},
      {"failures", failures_json(run)},
      {"metrics", series_json(run.metrics, limits.series)},
      {"step_times", step_times_json(events, limits)},
      {"events", marks_json(events, limits)},
      {"plan", plan_map_json(plan, last_attempt_ranks(run), limits)},
      {"provenance", provenance_json(at(record, "provenance"))},
      {"energy", energy_json(at(run.links.empty() ? Json() : run.links.back().record, "attempts"))},
      {"job", job_json(newest(run, &LinkFiles::spec))},
      {"problems", problems_json(run)}};
}

Json report_json(const std::vector<RunFiles>& runs, const ReportRequest& request) {
  for (PageLimits limits;; limits = narrower(limits)) {
    Json out{{"schema", "dlrun.report/1"},
             {"made", format_utc(request.made)},
             {"dlrun", kVersion},
             {"runs", Json::array()}};
    for (const RunFiles& run : runs) out["runs"].push_back(run_json(run, limits));
    if (limits.series.points <= kFewestPoints || to_text(out).size() <= request.maximum_bytes) return out;
  }
}

}  // namespace dlrun::report
