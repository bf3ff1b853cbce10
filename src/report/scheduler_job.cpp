#include "src/report/scheduler_job.hpp"

#include "schedulers/query.hpp"
#include "schedulers/scheduler.hpp"

namespace dlrun::report {
namespace {

constexpr Seconds kLimit{10};

Result<CommandOutput> ask(const Submission& scheduler, const Argv& argv, const World& world) {
  return world.commands.run({.argv = argv,
                             .environment = query_environment(scheduler.environment(world.environment)),
                             .limit = kLimit});
}

std::optional<QueuePlace> place_of(const Submission& scheduler, const std::string& job, const World& world) {
  if (scheduler.queue_command().empty()) return std::nullopt;
  const auto queue = ask(scheduler, scheduler.queue_command(), world);
  return queue ? scheduler.queue_place(*queue, job) : std::nullopt;
}

std::string held_text(const Submission& scheduler, const std::string& job, const World& world) {
  const auto said = ask(scheduler, scheduler.hold_command(job), world);
  return said ? scheduler.why_held(*said) : std::string();
}

// A scheduler's state of a job may not tell one that waits from one that runs; its queue does.
SchedulerJob ask(const Submission& scheduler, const std::string& job, const World& world) {
  if (const auto place = place_of(scheduler, job, world))
    return {JobLife::waiting, *place, held_text(scheduler, job, world)};
  const auto state = ask(scheduler, scheduler.state_command(job), world);
  if (!state) return {};
  if (scheduler.is_alive(*state).value_or(false)) return {.life = JobLife::started};
  const auto known = scheduler.is_pending_or_alive(*state);
  if (known.value_or(false)) return {JobLife::waiting, {}, held_text(scheduler, job, world)};
  const bool gone = known == false || scheduler.is_alive(*state) == false;
  return {.life = gone ? JobLife::gone : JobLife::unknown};
}

}  // namespace

Result<CommandOutput> AskedOnce::run(const Command& command) const {
  const auto known = answers_.find(command.argv);
  if (known != answers_.end()) return known->second;
  return answers_.emplace(command.argv, commands_.run(command)).first->second;
}

SchedulerJob ask_scheduler_job(const std::string& scheduler, const std::string& job, const World& world) {
  const auto found = find_submission(scheduler, world.environment, world.commands);
  if (!found || !(*found)->is_job_id(job)) return {};
  return ask(**found, job, world);
}

std::optional<SchedulerJob> ask_waiting_job(const std::string& scheduler, const std::string& job,
                                            const World& world) {
  const auto found = find_submission(scheduler, world.environment, world.commands);
  if (!found || !(*found)->is_job_id(job)) return std::nullopt;
  if (!(*found)->queue_command().empty() && !place_of(**found, job, world)) return std::nullopt;
  SchedulerJob out = ask(**found, job, world);
  return out.life == JobLife::waiting ? std::optional(std::move(out)) : std::nullopt;
}

Cancelled cancel_scheduler_job(const std::string& scheduler, const std::string& job, const World& world) {
  const auto found = find_submission(scheduler, world.environment, world.commands);
  if (!found || !(*found)->is_job_id(job)) return Cancelled::no;
  const auto done = ask(**found, (*found)->cancel_command(job), world);
  if (done && done->status.success()) return Cancelled::yes;
  return ask(**found, job, world).life == JobLife::gone ? Cancelled::yes : Cancelled::no;
}

}  // namespace dlrun::report
