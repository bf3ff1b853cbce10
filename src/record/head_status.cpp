#include "src/record/head_status.hpp"

#include "src/base/enum_names.hpp"
#include "src/base/utc.hpp"

namespace dlrun::job {
namespace {

constexpr const char* kSchema = "dlrun.head/1";
constexpr auto kStages = enum_names<HeadStage>({{HeadStage::starting, "starting"},
                                                {HeadStage::running, "running"},
                                                {HeadStage::stopping, "stopping"},
                                                {HeadStage::ended, "ended"}});

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
Result<std::optional<T>> optional_field(const Json& json, std::string_view name, const std::string& where) {
  const auto found = json.find(name);
  if (json.is_object() && (found == json.end() || found->is_null())) return std::optional<T>();
  return std::optional<T>(TRY(field<T>(json, name, where)));
}

Result<Instant> instant_field(const Json& json, std::string_view name, const std::string& where) {
  const std::string text = TRY(field<std::string>(json, name, where));
  const auto when = parse_utc(text);
  return when ? Result<Instant>(*when)
              : fail(ErrorKind::input, "{}: field '{}': '{}' is not a time", where, name, text);
}

Json to_json(const SlowestRank& slowest) {
  return {{"rank", slowest.rank}, {"host", slowest.host}, {"step", slowest.step}, {"behind", slowest.behind}};
}

Result<SlowestRank> slowest_from_json(const Json& json, const std::string& where) {
  return SlowestRank{.rank = TRY(field<int>(json, "rank", where)),
                     .host = TRY(field<std::string>(json, "host", where)),
                     .step = TRY(field<std::int64_t>(json, "step", where)),
                     .behind = TRY(field<std::int64_t>(json, "behind", where))};
}

Json to_json(const NodeUsage& usage) {
  return {{"host", usage.host},
          {"cpu", or_null(usage.cpu)},
          {"memory_used", or_null(usage.memory_used)},
          {"memory_total", or_null(usage.memory_total)},
          {"received_per_second", or_null(usage.received)},
          {"sent_per_second", or_null(usage.sent)},
          {"gpu", or_null(usage.gpu)},
          {"gpu_memory_used", or_null(usage.gpu_memory_used)},
          {"gpu_memory_total", or_null(usage.gpu_memory_total)}};
}

Result<void> read_job(const Json& json, const std::string& where, HeadStatus& out) {
  out.process = TRY(process_identity_from_json(TRY(field<Json>(json, "process", where)), where));
  out.name = TRY(field<std::string>(json, "name", where));
  out.job_id = TRY(field<std::string>(json, "job_id", where));
  out.framework = TRY(field<std::string>(json, "framework", where));
  out.scheduler = TRY(field<std::string>(json, "scheduler", where));
  out.scheduler_job = TRY(optional_field<std::string>(json, "scheduler_job_id", where));
  out.nodes = TRY(field<std::size_t>(json, "nodes", where));
  out.ranks = TRY(field<std::size_t>(json, "ranks", where));
  out.attempt = TRY(field<int>(json, "attempt", where));
  out.began = TRY(instant_field(json, "began", where));
  return {};
}

Result<void> read_progress(const Json& json, const std::string& where, HeadStatus& out) {
  const std::string stage = TRY(field<std::string>(json, "stage", where));
  const auto known = kStages.value(stage);
  if (!known) return fail(ErrorKind::input, "{}: unknown stage '{}'", where, stage);
  out.stage = *known;
  out.phase = TRY(field<std::string>(json, "phase", where));
  out.progress = TRY(field<Json>(json, "progress", where));
  out.steps_per_second = TRY(optional_field<double>(json, "steps_per_second", where));
  if (const auto left = TRY(optional_field<double>(json, "seconds_left", where))) out.left = Seconds(*left);
  if (!TRY(field<Json>(json, "walltime_end", where)).is_null())
    out.walltime_end = TRY(instant_field(json, "walltime_end", where));
  if (const Json slowest = TRY(field<Json>(json, "slowest_rank", where)); !slowest.is_null())
    out.slowest = TRY(slowest_from_json(slowest, where));
  if (json.contains("stragglers")) out.stragglers = json["stragglers"];  // an older head does not tell
  if (json.contains("losses")) out.losses = json["losses"];
  if (json.contains("joins")) out.joins = json["joins"];
  for (const Json& node : TRY(field<Json>(json, "usage", where)))
    out.usage.push_back(TRY(node_usage_from_json(node, where)));
  return {};
}

}  // namespace

Result<NodeUsage> node_usage_from_json(const Json& json, const std::string& where) {
  NodeUsage out;
  out.host = TRY(field<std::string>(json, "host", where));
  out.cpu = TRY(optional_field<double>(json, "cpu", where));
  out.memory_used = TRY(optional_field<std::uint64_t>(json, "memory_used", where));
  out.memory_total = TRY(optional_field<std::uint64_t>(json, "memory_total", where));
  out.received = TRY(optional_field<double>(json, "received_per_second", where));
  out.sent = TRY(optional_field<double>(json, "sent_per_second", where));
  out.gpu = TRY(optional_field<double>(json, "gpu", where));
  out.gpu_memory_used = TRY(optional_field<std::uint64_t>(json, "gpu_memory_used", where));
  out.gpu_memory_total = TRY(optional_field<std::uint64_t>(json, "gpu_memory_total", where));
  return out;
}

std::string_view word_of(HeadStage stage) {
  return kStages.name(stage);
}

Json to_json(const HeadStatus& status) {
  Json usage = Json::array();
  for (const NodeUsage& node : status.usage) usage.push_back(to_json(node));
  return {{"schema", kSchema},
          {"process", to_json(status.process)},
          {"name", status.name},
          {"job_id", status.job_id},
          {"framework", status.framework},
          {"scheduler", status.scheduler},
          {"scheduler_job_id", or_null(status.scheduler_job)},
          {"nodes", status.nodes},
          {"ranks", status.ranks},
          {"attempt", status.attempt},
          {"began", format_utc(status.began)},
          {"written", format_utc(status.written)},
          {"beats", status.beats},
          {"stage", word_of(status.stage)},
          {"phase", status.phase},
          {"progress", status.progress},
          {"steps_per_second", or_null(status.steps_per_second)},
          {"seconds_left", status.left ? Json(status.left->count()) : Json(nullptr)},
          {"walltime_end", status.walltime_end ? Json(format_utc(*status.walltime_end)) : Json(nullptr)},
          {"slowest_rank", status.slowest ? to_json(*status.slowest) : Json(nullptr)},
          {"stragglers", status.stragglers},
          {"losses", status.losses},
          {"joins", status.joins},
          {"usage", std::move(usage)},
          {"exit_code", or_null(status.exit_code)},
          {"stopped", status.stopped},
          {"reason", status.reason}};
}

Result<HeadStatus> head_status_from_json(const Json& json, const std::string& where) {
  const std::string schema = TRY(field<std::string>(json, "schema", where));
  if (schema != kSchema) return fail(ErrorKind::input, "{}: schema '{}' is not {}", where, schema, kSchema);
  HeadStatus out;
  TRY(read_job(json, where, out));
  out.written = TRY(instant_field(json, "written", where));
  out.beats = TRY(field<std::uint64_t>(json, "beats", where));
  TRY(read_progress(json, where, out));
  out.exit_code = TRY(optional_field<int>(json, "exit_code", where));
  if (json.contains("stopped")) out.stopped = TRY(field<bool>(json, "stopped", where));  // as above
  out.reason = TRY(field<std::string>(json, "reason", where));
  return out;
}

}  // namespace dlrun::job
