// Supervisor: decides when a job's members must end, and how. Pure: events and the time in, actions out; no
// process, no clock, no signal is touched here. The agent uses it over its ranks, the head over its nodes.
//
// The first failure opens a short window, in which the others' own ends may still arrive (they are
// consequences, not causes); then the members left get TERM, and after the grace KILL. A polite stop goes to
// TERM at once, and however often it comes, the grace stays; whoever cannot wait says `now`.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun {

struct Failure {
  int member = 0;
  int code = 1;        // what dlrun exits with
  std::string reason;  // "exit code 3", "killed by SIGKILL (9)", "called MPI_Abort(7)"
};

class Supervisor {
 public:
  struct Policy {
    Seconds failure_window{0.3};  // ends of other members that follow from the first failure may still arrive
    Seconds grace{10};
    std::optional<Seconds> grace_after_failure = {};  // the same where nothing is said
  };
  enum class Urgency { polite, now };

  // Events. Gone says that a member is no more, for whatever reason; Failed may come before it, or never.
  struct Failed {
    Failure failure;
    Urgency urgency = Urgency::polite;  // now: no failure window
  };
  struct Gone {
    int member;
  };
  struct Stop {
    Urgency urgency;
    bool after_failure = false;  // of a member that another supervisor watches
  };
  struct Tick {};
  using Event = std::variant<Failed, Gone, Stop, Tick>;

  // Actions, to be done in order.
  struct Signal {
    int number;  // to every member left
  };
  struct WakeAt {
    Ticks when;  // send a Tick then
  };
  struct Finish {};  // all members are gone; comes once
  using Action = std::variant<Signal, WakeAt, Finish>;

  Supervisor(int members, Policy policy);
  std::vector<Action> on(const Event& event, Ticks now);

  /// One member more, while nothing ends.
  void add(int member) { left_.insert(member); }
  const std::optional<Failure>& first_failure() const { return first_failure_; }
  bool stop_was_asked() const { return stop_asked_; }
  const std::set<int>& left() const { return left_; }

 private:
  enum class State { running, failure_window, terminating, killing, finished };
  std::vector<Action> terminate(Ticks now);
  std::vector<Action> kill();
  std::vector<Action> advance(Ticks now);

  Policy policy_;
  State state_ = State::running;
  Ticks deadline_{};
  std::set<int> left_;
  std::optional<Failure> first_failure_;
  bool stop_asked_ = false, failed_ = false;
};

}  // namespace dlrun
