// Which scheduler a job is submitted to: the one that is named, or the one whose submit command is on PATH.
#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/process/child.hpp"

namespace dlrun {
namespace {

std::vector<const Scheduler*> found_here(const Environment& environment, const CommandRunner& commands) {
  std::vector<const Scheduler*> out;
  std::map<std::string, ProgramText> texts;  // several schedulers have a qsub
  for (const Scheduler& scheduler : all_schedulers()) {
    const std::string program(scheduler.submit_program);
    if (program.empty() || !find_program(program, environment, "")) continue;
    const auto text = texts.try_emplace(program, program, environment, commands).first;
    if (scheduler.owns_submit_program == nullptr || scheduler.owns_submit_program(text->second))
      out.push_back(&scheduler);
  }
  return out;
}

std::vector<std::string> submit_names() {
  std::vector<std::string> out;
  for (const Scheduler& scheduler : all_schedulers())
    if (scheduler.submission != nullptr) out.emplace_back(scheduler.name);
  return out;
}

std::string submit_programs() {
  std::vector<std::string> out;
  for (const Scheduler& scheduler : all_schedulers()) {
    const std::string program(scheduler.submit_program);
    if (!program.empty() && std::find(out.begin(), out.end(), program) == out.end()) out.push_back(program);
  }
  return join(out, ", ");
}

tl::unexpected<Error> no_choice(const std::vector<const Scheduler*>& found) {
  if (found.empty())
    return fail(Error{.kind = ErrorKind::unavailable,
                      .what = fmt::format("no scheduler's submit command is on PATH ({})", submit_programs()),
                      .where = {},
                      .hint = "run it on a login node, or see the script: --scheduler NAME --dry-run"});
  std::vector<std::string> names;
  for (const Scheduler* scheduler : found)
    names.push_back(fmt::format("{} ({})", scheduler->submit_program, scheduler->name));
  return fail(Error{.kind = ErrorKind::usage,
                    .what = "submit commands of several schedulers are on PATH: " + join(names, ", "),
                    .where = {},
                    .hint = fmt::format("choose one: --scheduler {}", found.front()->name)});
}

// A prefix that the target's own jobs have too is not dropped: PBS and Torque share theirs.
void drop_job_variables(const VariableRules& rules, const VariableRules& target, Environment& environment) {
  std::map<std::string, std::string> kept;
  for (const std::string_view name : rules.keep_for_submit)
    if (const auto value = environment.find(name)) kept[std::string(name)] = *value;
  for (const std::string_view prefix : rules.drop_for_submit)
    if (const auto& shared = target.drop_for_submit;
        std::find(shared.begin(), shared.end(), prefix) == shared.end())
      environment.unset_prefix(prefix);
  environment.merge(kept);
}

}  // namespace

Environment Submission::environment(Environment ours) const {
  const Scheduler& target = *find_scheduler(name());
  for (const Scheduler& scheduler : all_schedulers())
    drop_job_variables(scheduler.variables, target.variables, ours);
  return own_environment(std::move(ours));
}

const std::string& ProgramText::of(const std::string& flag) const {
  const auto known = known_.find(flag);
  if (known != known_.end()) return known->second;
  const auto output =
      commands_.run({.argv = {program_, flag}, .environment = environment_, .limit = Seconds(20)});
  return known_[flag] = output ? lower(output->out + output->err) : std::string();
}

Result<const Scheduler*> find_submit_scheduler(std::string_view wanted, const Environment& environment,
                                               const CommandRunner& commands) {
  if (wanted == "auto") {
    const std::vector<const Scheduler*> found = found_here(environment, commands);
    if (found.size() != 1) return no_choice(found);
    return found.front();
  }
  const Scheduler* named = find_scheduler(wanted);
  if (named != nullptr && named->submission != nullptr) return named;
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("dlrun submit does not support '{}'", wanted),
                    .where = {},
                    .hint = did_you_mean(wanted, submit_names())});
}

Result<std::unique_ptr<Submission>> find_submission(std::string_view wanted, const Environment& environment,
                                                    const CommandRunner& commands) {
  return TRY(find_submit_scheduler(wanted, environment, commands))->submission();
}

}  // namespace dlrun
