#include "src/record/record.hpp"

#include <algorithm>

#include <sys/utsname.h>

#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/version.hpp"
#include "src/record/provenance/facts.hpp"

namespace dlrun::job {
namespace {

Json ranks_json(const plan::Plan& plan, const Outcome& outcome) {
  Json ranks = Json::array();
  for (const plan::RankPlan& rank : plan.ranks) {
    const auto index = static_cast<std::size_t>(rank.rank.get());
    Json entry{{"rank", rank.rank.get()},
               {"role", rank.role},
               {"task_index", rank.task_index},
               {"host", plan.nodes.at(static_cast<std::size_t>(rank.node.get())).host.get()}};
    const RankResult result = index < outcome.ranks.size() ? outcome.ranks[index] : RankResult{};
    entry["processors"] = result.processors;
    entry["end"] = result.status ? Json(result.status->text()) : Json(nullptr);
    if (result.told_to_end) entry["told_to_end"] = true;
    if (result.spared) entry["spared"] = true;
    entry["code"] = result.status ? Json(result.status->code()) : Json(nullptr);
    ranks.push_back(std::move(entry));
  }
  return ranks;
}

Json walltime_json(const WalltimeEnd& end) {
  static constexpr const char* stages[] = {"none", "asked", "ended", "killed"};
  const bool asked = end.left.count() > 0;
  return {{"end", end.end ? Json(format_utc(*end.end)) : Json(nullptr)},
          {"stop", stages[static_cast<int>(end.stage)]},
          {"seconds_left_when_asked", asked ? Json(end.left.count()) : Json(nullptr)},
          {"saved", end.saved},
          {"saved_when_asked", end.saved_when_asked}};
}

Json failure_json(const FirstFailure& first_failure) {
  return {{"rank", first_failure.rank ? Json(first_failure.rank->get()) : Json(nullptr)},
          {"role", first_failure.role},
          {"task_index", first_failure.task_index},
          {"host", first_failure.host},
          {"code", first_failure.code},
          {"reason", first_failure.reason},
          {"cause", first_failure.cause.empty() ? Json(nullptr) : Json(first_failure.cause)},
          {"last_lines", first_failure.last_lines}};
}

// What the people can do whose program saved and did not say so.
std::string no_checkpoint(const Outcome& outcome) {
  const bool all_zero = std::all_of(outcome.ranks.begin(), outcome.ranks.end(), [](const RankResult& rank) {
    return rank.told_to_end || rank.spared || (rank.status && rank.status->success());
  });
  if (!all_zero) return ": no checkpoint was reported";
  return ": the program ended with exit code 0, and no checkpoint was reported; if it saved, name its files "
         "by "
         "checkpoint.files, let it exit with 75, or report it (dlrun_client.py)";
}

// What had to be done to ranks that were asked to stop, or could not be.
std::string forced_end(const WalltimeEnd& end) {
  if (end.stage < WalltimeEnd::Stage::ended) return "";
  const std::string by = end.stage == WalltimeEnd::Stage::killed ? "SIGKILL" : "SIGTERM";
  if (end.left.count() <= 0) return ", and they were ended by " + by;
  return end.saved_when_asked ? ", saved, and was ended by " + by + " on its way out"
                              : ", did not, was ended by " + by;
}

// At the end of the walltime: what was asked, what came of it, and what is left to do.
std::string walltime_reason(const Outcome& outcome) {
  const WalltimeEnd& end = outcome.walltime;
  const std::string so_far =
      (end.left.count() > 0
           ? fmt::format("asked to stop {} before the end of the walltime", format_duration(end.left))
           : std::string("the walltime ended before the ranks could be asked to stop")) +
      forced_end(end);
  if (outcome.exit_code != to_int(ExitCode::again)) return so_far + no_checkpoint(outcome);
  const std::string saved = end.saved.is_null()     ? ""
                            : end.saved.is_string() ? " (" + end.saved.get<std::string>() + ")"
                                                    : " of step " + to_text(end.saved);
  return so_far + ": stopped with a valid checkpoint" + saved + ": run the same command again to resume";
}

}  // namespace

std::string reason_of(const Outcome& outcome) {
  if (outcome.error) return *outcome.error;
  if (outcome.unreachable) return outcome.unreachable->text();
  if (outcome.first_failure) return outcome.first_failure->text();
  const bool at_walltime = outcome.walltime.stage != WalltimeEnd::Stage::none && !outcome.interrupted_by;
  if (at_walltime && outcome.exit_code != 0) return walltime_reason(outcome);
  std::string cancelled =
      outcome.cancelled_by
          ? fmt::format("cancelled ({} from {})", signal_name(*outcome.interrupted_by), *outcome.cancelled_by)
          : "";
  if (outcome.exit_code == to_int(ExitCode::again))
    return (cancelled.empty() ? "stopped" : cancelled) +
           " with a valid checkpoint: run the same command again to resume";
  if (outcome.exit_code == 0) return "done";
  if (!cancelled.empty()) return cancelled;
  if (outcome.interrupted_by) return "interrupted by " + signal_text(*outcome.interrupted_by);
  return "failed";
}

Json provenance(const RecordedJob& job, const Environment& environment, const Json& found) {
  utsname system{};
  ::uname(&system);
  Json out{{"dlrun", kVersion},
           {"compiler", kCompiler},
           {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
           {"host", system.nodename},
           {"working_directory", job.plan.working_directory},
           {"adapter", job.adapter_source}};
  for (const HeadFact& fact : head_facts())
    out[std::string(fact.name)] = fact.find(job.plan, job.spec, environment);
  out.update(found);
  return out;
}

Json attempt_record(const plan::Plan& plan, const Outcome& outcome) {
  const TimeParts& time = outcome.time;
  const Json seconds{{"start", time.launch.count()},
                     {"ranks", time.ranks.count()},
                     {"checkpoint", time.saving.count()},
                     {"finish", time.finish.count()},
                     {"total", time.total.count()}};
  Json out{
      {"attempt", plan.attempt},
      {"exit_code", outcome.exit_code},
      {"reason", reason_of(outcome)},
      {"first_failure", outcome.first_failure ? failure_json(*outcome.first_failure) : Json(nullptr)},
      {"interrupted_by", outcome.interrupted_by ? Json(signal_text(*outcome.interrupted_by)) : Json(nullptr)},
      {"cancelled_by", outcome.cancelled_by ? Json(*outcome.cancelled_by) : Json(nullptr)},
      {"ranks", ranks_json(plan, outcome)},
      {"processes_ended_behind_ranks", outcome.strays},
      {"nodes_not_verified_clean", outcome.agents_unverified},
      {"walltime", walltime_json(outcome.walltime)},
      {"time", to_json(outcome.time)},
      {"step_timing", to_json(outcome.timing)},
      {"stragglers", outcome.stragglers},
      {"energy", outcome.energy},
      {"seconds", seconds}};
  if (outcome.staged_bytes) out["staged_bytes"] = *outcome.staged_bytes;
  if (!outcome.losses.empty()) out["losses"] = to_json(outcome.losses);
  if (!outcome.joins.empty()) out["joins"] = to_json(outcome.joins);
  return out;
}

Json make_record(const RecordedJob& job, const Outcome& outcome, const RunTimes& times, Json attempts,
                 Json provenance) {
  return {{"schema", "dlrun.record/1"},
          {"name", job.plan.name},
          {"job_id", job.plan.job_id},
          {"framework", job.plan.framework},
          {"scheduler", job.allocation.scheduler},
          {"scheduler_job_id", job.allocation.job_id ? Json(*job.allocation.job_id) : Json(nullptr)},
          {"run_directory", job.plan.run_directory},
          {"began", format_utc(times.began)},
          {"ended", format_utc(times.ended)},
          {"exit_code", outcome.exit_code},
          {"reason", reason_of(outcome)},
          {"result", outcome.result},
          {"last_progress", outcome.last_progress},
          {"time", to_json(times.parts)},
          {"attempts", std::move(attempts)},
          {"provenance", std::move(provenance)}};
}

}  // namespace dlrun::job
