#include "src/agent/suspension.hpp"

#include "src/process/process_state.hpp"

namespace dlrun::agent {

// The reaper, where a node's scheduler started it; the head above it, where the agent is on its machine.
Suspension::Above probe_above(pid_t reaper) {
  const auto own = process_state(reaper);
  if (!own) return Suspension::Above::run;  // it was killed: that is another matter
  const auto above = process_state(own->parent);
  const bool stopped = own->state == 'T' || (above && above->state == 'T');
  return stopped ? Suspension::Above::stopped : Suspension::Above::run;
}

}  // namespace dlrun::agent
