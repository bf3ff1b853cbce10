// What a scheduler says of one job now: whether it waits, and where, whether it runs, or whether it is gone.
// It asks the scheduler's own commands, each for some seconds at most. No answer is no verdict.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "schedulers/queue_place.hpp"
#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/process/command.hpp"

namespace dlrun::report {

/// What looking at runs needs of the world.
struct World {
  const Environment& environment;
  const CommandRunner& commands;
  const Clock& clock;
  std::function<void(Seconds)> pause;
};

/// Runs each command once: the queue of a scheduler answers for all runs of a list.
class AskedOnce final : public CommandRunner {
 public:
  explicit AskedOnce(const CommandRunner& commands) : commands_(commands) {}
  Result<CommandOutput> run(const Command& command) const override;

 private:
  const CommandRunner& commands_;
  mutable std::map<Argv, Result<CommandOutput>> answers_;
};

enum class JobLife { waiting, started, gone, unknown };

struct SchedulerJob {
  JobLife life = JobLife::unknown;
  QueuePlace place = {};  // while it waits
  std::string held = {};  // why it will not start by itself; empty: it will
};

SchedulerJob ask_scheduler_job(const std::string& scheduler, const std::string& job, const World& world);

/// The job as it waits; empty where it does not, or where nobody knows. One that does not wait costs one look
/// at the queue.
std::optional<SchedulerJob> ask_waiting_job(const std::string& scheduler, const std::string& job,
                                            const World& world);

enum class Cancelled { yes, no };
/// Cancels the job, or finds that it is gone.
Cancelled cancel_scheduler_job(const std::string& scheduler, const std::string& job, const World& world);

}  // namespace dlrun::report
