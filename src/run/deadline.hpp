// Deadline: when a run is told to save and stop, and when it must be over, so that the end of its allocation
// finds nothing running and everything written. Pure: events and the time in, actions out; who is told, and
// how, is the head's business, and so is asking the scheduler.
//
// Backwards from the end: `margin` before it whatever still runs gets TERM, a third of that before it KILL,
// and what is then left is for logs and the record. The request to save comes earlier by the time that a
// checkpoint was seen to take, by the longest time between two steps, in which nobody listens, and by what a
// program needs to end once it has saved.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun::job {

class Deadline {
 public:
  struct Policy {
    std::optional<Seconds> lead;  // as requested; unset: worked out from what is measured
    Seconds min_margin{4}, max_margin{30};
  };
  // Slurm compares with its controller's clock, and warns and sweeps by the minute: more margin there.
  static Policy policy_for(std::string_view scheduler, std::optional<Seconds> requested_lead);

  // Events.
  struct Ends {
    std::optional<Ticks> at;  // unset: there is no limit
  };
  struct Started {};  // every rank runs
  struct Step {};     // rank 0 has done another one
  struct Saved {
    Seconds took;
  };
  // The run stood still (suspended, stopped), and its scheduler's clock perhaps as well: nothing is done
  // before the end was told anew, or could not be.
  struct Slept {};
  struct EndUnknown {};
  struct Tick {};
  using Event = std::variant<Ends, Started, Step, Saved, Slept, EndUnknown, Tick>;

  // Actions, to be done in order.
  struct TrySave {};  // write one and go on: what it takes is not known yet
  struct SaveAndStop {
    Seconds left;  // until the end
  };
  enum class Force { term, kill };
  struct EndRanks {
    Force force;
  };
  struct ReadEnd {};  // limits get extended: ask the scheduler again
  struct WakeAt {
    Ticks when;  // send a Tick then; replaces the one before
  };
  using Action = std::variant<TrySave, SaveAndStop, EndRanks, ReadEnd, WakeAt>;

  Deadline(Policy policy, Ticks began) : policy_(policy), began_(began) {}
  std::vector<Action> on(const Event& event, Ticks now);

  // How long before the end the request to save is due, as far as is known now.
  Seconds lead() const;
  Seconds margin() const;

 private:
  enum class State { running, asked, ending, killing };
  void note(const Event& event, Ticks now);
  void note_step(Ticks now);
  std::vector<Action> due(Ticks now);
  std::optional<Ticks> next(Ticks now) const;
  Seconds total() const { return *end_ - began_; }
  Seconds way_out() const;
  Ticks before_end(Seconds time) const;
  std::optional<Ticks> try_save_at() const;

  Policy policy_;
  Ticks began_;
  State state_ = State::running;
  std::optional<Ticks> end_;
  bool started_ = false, tried_ = false;
  std::optional<Ticks> first_step_, last_step_;
  std::optional<Seconds> longest_save_;
  Seconds longest_pause_{0};
  std::optional<Ticks> next_read_;
  std::optional<Ticks> held_until_;
  std::optional<Ticks> armed_;
};

}  // namespace dlrun::job
