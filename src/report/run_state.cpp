#include "src/report/run_state.hpp"

#include "src/base/enum_names.hpp"
#include "src/base/exit_code.hpp"

namespace dlrun::report {
namespace {

using job::HeadStage;
using job::HeadStatus;

constexpr auto kStates = enum_names<RunState>({{RunState::queued, "queued"},
                                               {RunState::starting, "starting"},
                                               {RunState::running, "running"},
                                               {RunState::stopping, "stopping"},
                                               {RunState::done, "done"},
                                               {RunState::stopped, "stopped"},
                                               {RunState::failed, "failed"},
                                               {RunState::lost, "lost"}});

// A run that was interrupted or cancelled did not fail by itself.
bool was_stopped(const Json& record) {
  const auto attempts = field<Json>(record, "attempts", "record");
  if (!attempts || !attempts->is_array() || attempts->empty()) return false;
  const Json& last = attempts->back();
  const auto is_told = [&](const char* name) {
    return last.is_object() && last.contains(name) && !last.at(name).is_null();
  };
  return !is_told("first_failure") && (is_told("interrupted_by") || is_told("cancelled_by"));
}

Standing end_with(int code, std::string reason, bool stopped) {
  const RunState state = code == 0                                    ? RunState::done
                         : stopped || code == to_int(ExitCode::again) ? RunState::stopped
                                                                      : RunState::failed;
  return {state, state == RunState::done ? "" : std::move(reason), code};
}

RunState state_of(HeadStage stage) {
  return stage == HeadStage::starting  ? RunState::starting
         : stage == HeadStage::running ? RunState::running
                                       : RunState::stopping;
}

std::string gone_text(const HeadStatus& head, Life life) {
  const std::string who = fmt::format("process {} on {}", head.process.pid, head.process.host);
  const std::string seen = format_utc(std::chrono::floor<std::chrono::seconds>(head.written));
  if (life == Life::ended)
    return fmt::format("its head, {}, is gone and wrote no record; last sign of life {}", who, seen);
  return fmt::format("its head, {}, has given no sign of life since {}: it is gone, stopped or cut off", who,
                     seen);
}

}  // namespace

std::string_view word_of(RunState state) {
  return kStates.name(state);
}

Standing standing_of(const RunFolder& run, const std::optional<HeadStatus>& head, Life life) {
  const auto code = field<int>(run.record, "exit_code", "record");
  if (code)
    return end_with(*code, field<std::string>(run.record, "reason", "record").value_or(""),
                    was_stopped(run.record));
  if (head && head->exit_code) return end_with(*head->exit_code, head->reason, head->stopped);
  if (!head)
    return {RunState::lost, "it has no record, and no status.json that tells of a head at work",
            std::nullopt};
  if (life != Life::alive) return {RunState::lost, gone_text(*head, life), std::nullopt};
  return {state_of(head->stage), "", std::nullopt};
}

std::optional<HeadStatus> head_of(RunFolder& run) {
  if (run.status.is_null()) return std::nullopt;
  auto head = job::head_status_from_json(run.status, (run.path / "status.json").string());
  if (head) return std::move(*head);
  run.problems.push_back(head.error().text());
  return std::nullopt;
}

}  // namespace dlrun::report
