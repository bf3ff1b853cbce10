// The document of a RunView: the same names as in record.json where it tells the same things. What is not
// known is null.
#include "src/report/run_view.hpp"

namespace dlrun::report {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json time_or_null(const std::optional<Instant>& when) {
  return when ? Json(format_utc(*when)) : Json(nullptr);
}
Json seconds_until(const std::optional<Instant>& when, Instant now) {
  return when ? Json(Seconds(*when - now).count()) : Json(nullptr);
}

std::string_view kind_word(FolderKind kind) {
  return kind == FolderKind::chain ? "chain" : kind == FolderKind::submission ? "submission" : "run";
}

Json queue_json(const RunView& view) {
  if (view.standing.state != RunState::queued) return nullptr;
  const QueuePlace& place = view.job.place;
  return {{"position", place.position ? Json(*place.position) : Json(nullptr)},
          {"start", time_or_null(place.start)},
          {"reason", text_or_null(place.reason)},
          {"held", text_or_null(view.job.held)}};
}

Json hosts_json(const RunView& view, const Json& usage) {
  Json out = Json::array();
  for (const HostView& host : view.hosts) {
    Json told = nullptr;
    for (const Json& each : usage)
      if (host.usage && each.at("host") == host.host) told = each;
    out.push_back({{"host", host.host}, {"ranks", host.ranks}, {"usage", std::move(told)}});
  }
  return out;
}

Json roles_json(const RunView& view) {
  Json out = view.roles.empty() ? Json(nullptr) : Json::object();
  for (const auto& [role, tasks] : view.roles) out[role] = tasks;
  return out;
}

}  // namespace

Json to_json(const RunView& view, Instant now) {
  const bool on = !is_over(view.standing.state);
  const Json head = view.head ? job::to_json(*view.head) : Json(nullptr);
  const auto of_head = [&](const char* name) { return on && view.head ? head.at(name) : Json(nullptr); };
  const std::optional<Seconds> left = on && view.head ? view.head->left : std::nullopt;
  const std::optional<Instant> walltime_end = on && view.head ? view.head->walltime_end : std::nullopt;
  const Instant until = view.ended.value_or(now);
  Json out{
      {"schema", "dlrun.status/1"},
      {"kind", kind_word(view.entry.kind)},
      {"run", view.entry.folder()},
      {"directory", view.entry.path.string()},
      {"run_directory", text_or_null(view.run.string())},
      {"name", view.name},
      {"state", word_of(view.standing.state)},
      {"reason", text_or_null(view.standing.reason)},
      {"exit_code", view.standing.exit_code ? Json(*view.standing.exit_code) : Json(nullptr)},
      {"framework", text_or_null(view.framework)},
      {"scheduler", text_or_null(view.scheduler)},
      {"scheduler_job_id", view.scheduler_job ? Json(*view.scheduler_job) : Json(nullptr)},
      {"nodes", view.nodes},
      {"ranks", view.ranks},
      {"roles", roles_json(view)},
      {"attempt", view.attempt},
      {"began", time_or_null(view.began)},
      {"ended", time_or_null(view.ended)},
      {"seconds", view.began && (on || view.ended) ? Json(Seconds(until - *view.began).count()) : Json()},
      {"phase", of_head("phase")},
      {"progress", view.progress},
      {"result", view.result},
      {"steps_per_second", of_head("steps_per_second")},
      {"seconds_left", left ? Json(left->count()) : Json(nullptr)},
      {"walltime_end", time_or_null(walltime_end)},
      {"walltime_seconds_left", seconds_until(walltime_end, now)},
      {"slowest_rank", of_head("slowest_rank")},
      {"stragglers", of_head("stragglers")},
      {"losses", view.head ? head.at("losses") : Json(nullptr)},
      {"joins", view.head ? head.at("joins") : Json(nullptr)},
      {"hosts", hosts_json(view, view.head ? head.at("usage") : Json::array())},
      {"head", view.head ? Json{{"host", view.head->process.host},
                                {"pid", view.head->process.pid},
                                {"last_sign", format_utc(view.head->written)}}
                         : Json(nullptr)},
      {"queue", queue_json(view)}};
  out["chain"] = view.chain ? to_json(*view.chain, job::ChainFolder(view.entry.path), now) : Json(nullptr);
  out["problems"] = view.problems;
  return out;
}

}  // namespace dlrun::report
