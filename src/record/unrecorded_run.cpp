#include "src/record/unrecorded_run.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/base/utc.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

// The last time that a file below the folder was written; `began` where there is none.
Instant last_written(const fs::path& folder, Instant began) {
  Instant out = began;
  std::error_code problem, ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, problem)) {
    const auto written = entry.last_write_time(ignored);
    if (ignored) continue;
    const auto when = std::chrono::file_clock::to_sys(written);
    out = std::max(out, std::chrono::time_point_cast<Milliseconds>(when));
  }
  return out;
}

void replay(const Json& event, Ticks when, TimeAccounting& time) {
  const std::string kind = field<std::string>(event, "event", "event").value_or("");
  if (kind == "started") time.rank_started(when), time.all_started(when);
  const Json report = field<Json>(event, "report", "event").value_or(Json());
  if (kind != "report" || !report.contains("saved")) return;
  const Seconds took(field<double>(report, "seconds", "report").value_or(0));
  time.saved(when, to_text(report["saved"]), took,
             Seconds(field<double>(report, "held", "report").value_or(took.count())));
}

}  // namespace

TimeParts times_of_events(const std::vector<Json>& events, Instant began, Instant last_sign) {
  const auto ticks = [&](Instant when) { return Ticks{} + std::max(when - began, Milliseconds(0)); };
  TimeAccounting time(ticks(began));
  for (const Json& event : events)
    if (const auto when = parse_utc(field<std::string>(event, "time", "event").value_or("")))
      replay(event, ticks(*when), time);
  time.rank_exited(ticks(last_sign));
  return time.conclude(TimeAccounting::End::failed, ticks(last_sign));
}

UnrecordedRun read_unrecorded_run(const fs::path& run_directory, Instant began) {
  UnrecordedRun out;
  out.last_sign = last_written(run_directory, began);
  std::vector<Json> events;
  const auto text = read_regular_file(run_directory / "events.jsonl");
  for (const std::string& line : split(text ? *text : std::string(), '\n'))
    if (auto event = parse_json(line, "events.jsonl"))
      events.push_back(std::move(*event));  // the last may be torn
  out.time = times_of_events(events, began, out.last_sign);
  return out;
}

}  // namespace dlrun::job
