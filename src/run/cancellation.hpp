// Cancellation: whether somebody ended the run from outside, and who: a scheduler (scancel, qdel, bkill, its
// time limit) or a user. Pure. Schedulers signal the head, the agents and the ranks in any order, and some of
// them not at all; so an agent that was told to end tells nothing of its node until the head's own signal had
// time to come, and a rank that died of the same signal a moment before has not failed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/base/clock.hpp"
#include "src/process/event_loop.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

class Cancellation {
 public:
  // How long after an agent's signal the head's own may come.
  static constexpr Seconds kSignalWindow{2};
  // And how long after the end of all ranks, where one died of such a signal.
  static constexpr Seconds kOwnSignal{0.5};

  // `scheduler_job`: "Slurm, job 17"; empty outside of a scheduler's job.
  Cancellation(std::size_t nodes, std::string scheduler_job)
      : nodes_(nodes), scheduler_job_(std::move(scheduler_job)) {}

  // An agent was told to end, by somebody else than the head.
  void agent_told(int node, const CaughtSignal& signal) { told_.emplace(node, signal); }
  // So many agents work by now, where that changes.
  void set_nodes(std::size_t nodes) { nodes_ = nodes; }
  // The signal that was meant for the whole run; unset where only single nodes' agents were told.
  // `after_window`: no more signals are awaited.
  enum class Time { now, after_window };
  std::optional<CaughtSignal> of_the_run(Time time) const;
  const std::map<int, CaughtSignal>& told() const { return told_; }
  // Those that were told, once; the next one is told for itself.
  std::map<int, CaughtSignal> take_told() { return std::exchange(told_, {}); }

  // The scheduler's job that a signal came from; unset where a user or a terminal sent it.
  std::optional<std::string> sent_by(const CaughtSignal& signal) const;
  // Whether the signal explains a failure that was seen `before` it.
  bool explains(const CaughtSignal& signal, const FirstFailure& failure, Seconds before) const;
  // Whether a signal with which runs are cancelled may explain the failure, should one come.
  static bool may_be_part_of_one(const FirstFailure& failure);

 private:
  std::size_t nodes_;
  std::string scheduler_job_;
  std::map<int, CaughtSignal> told_;
};

}  // namespace dlrun::job
