#include "src/report/page/time_rows.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/report/page/event_marks.hpp"

namespace dlrun::report {
namespace {

constexpr const char* kParts[] = {"start", "useful", "checkpoint", "lost", "idle", "total"};
constexpr std::size_t kMaxFailures = 20, kMaxLines = 20;

Json at(const Json& object, const char* name) {
  return object.is_object() ? object.value(name, Json()) : Json();
}

// When each attempt began and ended, from the events: an attempt whose end nobody wrote has none.
struct Span {
  Json began, ended;
};

std::vector<Span> spans_of(const LinkFiles& link) {
  std::vector<Span> out;
  for (const Json& event : link.events) {
    const Json kind = at(event, "event");
    if (kind == "planned") out.push_back({seconds_of(event, "time"), nullptr});
    if (kind == "ended" && !out.empty()) out.back().ended = seconds_of(event, "time");
  }
  return out;
}

Json attempts_json(const LinkFiles& link) {
  Json out = Json::array();
  const std::vector<Span> spans = spans_of(link);
  const Json attempts = at(link.record, "attempts");
  const std::size_t count = std::max(spans.size(), attempts.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Json recorded = i < attempts.size() ? attempts[i] : Json();
    const Span span = i < spans.size() ? spans[i] : Span{};
    out.push_back({{"attempt", i + 1},
                   {"began", span.began},
                   {"ended", span.ended},
                   {"exit_code", at(recorded, "exit_code")},
                   {"reason", at(recorded, "reason")},
                   {"time", at(recorded, "time")},
                   {"pace", at(recorded, "pace")}});
  }
  return out;
}

// Without a record: up to the last sign of life.
void add_unrecorded(const LinkFiles& link, Json& out) {
  if (!link.unrecorded) return;
  out["began"] = link.events.empty() ? Json(nullptr) : seconds_of(link.events.front(), "time");
  out["ended"] = static_cast<double>(link.unrecorded->last_sign.time_since_epoch().count()) / 1e3;
  out["time"] = to_json(link.unrecorded->time);
}

Json link_json(const LinkFiles& link, int number) {
  Json out{{"number", number},
           {"job", at(link.record, "scheduler_job_id")},
           {"directory", link.path.string()},
           {"began", seconds_of(link.record.is_object() ? link.record : Json::object(), "began")},
           {"ended", seconds_of(link.record.is_object() ? link.record : Json::object(), "ended")},
           {"queue", nullptr},
           {"end", link.record.is_null() ? Json("no record") : Json(nullptr)},
           {"exit_code", at(link.record, "exit_code")},
           {"reason", at(link.record, "reason")},
           {"time", at(link.record, "time")},
           {"attempts", attempts_json(link)}};
  add_unrecorded(link, out);
  return out;
}

// What the ledger of the chain knows, where the run directory does not say it.
void add_from_ledger(const job::Link& link, Json& out) {
  const Json times{{"began", link.began}, {"ended", link.ended}};
  const bool ended = link.end != job::LinkEnd::running;
  out["job"] = link.job_id;
  out["end"] = job::word_of(link.end);
  for (const char* name : {"began", "ended"})
    if (out[name].is_null()) out[name] = seconds_of(times, name);
  if (ended && out["time"].is_null()) out["time"] = to_json(link.time);
  if (ended && out["exit_code"].is_null() && link.end != job::LinkEnd::lost)
    out["exit_code"] = link.exit_code;
  if (ended && out["reason"].is_null()) out["reason"] = link.reason;
}

void add_queue(const Json& before, Json& link) {
  if (before["ended"].is_number() && link["began"].is_number())
    link["queue"] = std::max(link["began"].get<double>() - before["ended"].get<double>(), 0.0);
}

Json failure_json(const Json& failure, int link, std::size_t attempt) {
  Json lines = Json::array();
  const Json all = at(failure, "last_lines");
  for (std::size_t i = all.size() > kMaxLines ? all.size() - kMaxLines : 0; i < all.size(); ++i)
    lines.push_back(all[i]);
  Json out{{"link", link}, {"attempt", attempt}};
  for (const char* name : {"rank", "role", "task_index", "host", "code", "reason", "cause"})
    out[name] = at(failure, name);
  out["last_lines"] = std::move(lines);
  return out;
}

}  // namespace

Json links_json(const RunFiles& run) {
  Json out = Json::array();
  for (std::size_t i = 0; i < run.links.size(); ++i) {
    Json link = link_json(run.links[i], static_cast<int>(i) + 1);
    if (run.chain && i < run.chain->links.size()) add_from_ledger(run.chain->links[i], link);
    if (!out.empty()) add_queue(out.back(), link);
    out.push_back(std::move(link));
  }
  return out;
}

Json total_time_json(const Json& links) {
  Json out;
  double queue = 0;
  for (const Json& link : links) {
    if (link["queue"].is_number()) queue += link["queue"].get<double>();
    if (!link["time"].is_object()) continue;
    for (const char* part : kParts) {
      const Json seconds = at(link["time"], part);
      if (seconds.is_number())
        out[part] = (out.contains(part) ? out[part].get<double>() : 0.0) + seconds.get<double>();
    }
  }
  if (out.is_null()) return out;
  out["queue"] = queue;
  out["total"] = at(out, "total").is_number() ? out["total"].get<double>() + queue : queue;
  return out;
}

Json failures_json(const RunFiles& run) {
  Json out = Json::array();
  for (std::size_t i = 0; i < run.links.size(); ++i) {
    const Json attempts = at(run.links[i].record, "attempts");
    for (std::size_t attempt = 0; attempt < attempts.size() && out.size() < kMaxFailures; ++attempt)
      if (const Json failure = at(attempts[attempt], "first_failure"); failure.is_object())
        out.push_back(failure_json(failure, static_cast<int>(i) + 1, attempt + 1));
  }
  return out;
}

}  // namespace dlrun::report
