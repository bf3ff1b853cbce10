// Stop signals: which signals end a run, and what one means. Pure but for hold_stop_signals(). Every signal
// that can be caught and whose default ends a process is among them, so that each gives a verdict and a
// record; those of a crash (SEGV, BUS, ABRT, ...) are not: they are bugs.
//
// Schedulers, timeout(1) and shells send one signal to a process and to its group, or to all sessions of a
// job: what comes again within a moment is the same request. Only a key of the terminal, or a later signal,
// is a second one.
#pragma once

#include <optional>
#include <vector>

#include "src/base/clock.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun {

const std::vector<int>& stop_signals();

// Blocks them until a loop takes them, so that what comes in between is not lost and ends nothing half done.
void hold_stop_signals();
// Whether one of them (a warning is none) waits to be taken: nothing more is to be begun, or waited for.
bool stop_signal_is_held();

// Stops this process as SIGTSTP does where nobody catches it; returns when it goes on.
void stop_this_process();

class StopSignals {
 public:
  enum class Meaning { nothing, warning, stop, stop_now };
  Meaning of(const CaughtSignal& signal, Ticks now);
  const std::optional<CaughtSignal>& first() const { return first_; }

 private:
  std::optional<CaughtSignal> first_;
  Ticks when_{};
};

}  // namespace dlrun
