// Suspension: whether the ranks of this node are to stand still. Schedulers that suspend a job, and Ctrl-Z,
// stop the processes that they know: the head, or what they started on a node, which is the agent's reaper.
// The agent and its ranks have sessions of their own, so the agent follows: it probes the processes above
// it, and hears from the head.
#pragma once

#include <sys/types.h>

namespace dlrun::agent {

class Suspension {
 public:
  enum class Change { none, stop, go_on };

  // The head is about to be stopped by a key, or goes on.
  enum class Word { stop, go_on };
  Change head_says(Word word) {
    by_head_ = word == Word::stop;
    return change();
  }
  // Whether the kernel shows the processes above as stopped.
  enum class Above { run, stopped };
  Change above_is(Above above) {
    above_stopped_ = above == Above::stopped;
    return change();
  }
  bool suspended() const { return suspended_; }

 private:
  Change change() {
    const bool wanted = by_head_ || above_stopped_;
    if (wanted == suspended_) return Change::none;
    suspended_ = wanted;
    return wanted ? Change::stop : Change::go_on;
  }
  bool by_head_ = false, above_stopped_ = false, suspended_ = false;
};

// What the kernel shows now of the agent's reaper and of what started that.
Suspension::Above probe_above(pid_t reaper);

}  // namespace dlrun::agent
