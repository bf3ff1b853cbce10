// Elastic: that a job goes on without ranks that it loses, and which end of a rank is a loss.
#pragma once

#include "src/base/exit_code.hpp"

namespace dlrun::plan {

/// The job goes on while so many are left. `restarts`: how often in a row other ranks are started on a living
/// node in the places of lost ones.
struct Elastic {
  int min_nodes = 1, min_ranks = 1, restarts = 3;
  friend bool operator==(const Elastic&, const Elastic&) = default;
};

/// A rank that was killed, or that says that it lost the others, is missed by the others alone. One that
/// ends with an error of its own would end with it again, and so would the others.
inline bool is_loss(int exit_code, int signal) {
  return signal != 0 || exit_code == to_int(ExitCode::lost);
}

}  // namespace dlrun::plan
