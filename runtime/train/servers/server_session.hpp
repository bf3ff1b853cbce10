// ServerSession: a rank of role ps from its start to its end: it connects to the others and serves until the
// workers need it no more. A signal to stop is for the workers, which end it.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

/// The process's exit code.
int run_server_session(const TrainSpec& spec, const Environment& environment);

}  // namespace dlrun::runtime
