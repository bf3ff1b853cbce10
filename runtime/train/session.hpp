// Session: one run of dlrun-train from a checked job to an exit code: start up, agree, resume, train, end in
// order. The only place that knows the whole order.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

/// The process's exit code. Does not return where the job is ended through the ranks' own means.
int run_session(TrainSpec spec, const Environment& environment, Ticks begin);

/// "dlrun-train: error: ..." on stderr.
void print_error(const Error& error);

}  // namespace dlrun::runtime
