#include "src/agent/suspension.hpp"

#include "src/process/process_state.hpp"

namespace dlrun::agent {

// The keeper, where a node's scheduler started it; the head above it, where the agent is on its machine.
Suspension::Above look_above(pid_t keeper) {
  const auto own = process_state(keeper);
  if (!own) return Suspension::Above::run;  // it was killed: that is another matter
  const auto above = process_state(own->parent);
  const bool stopped = own->state == 'T' || (above && above->state == 'T');
  return stopped ? Suspension::Above::stopped : Suspension::Above::run;
}

}  // namespace dlrun::agent
