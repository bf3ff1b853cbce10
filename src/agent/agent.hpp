// The agent of one node: takes its slice of the plan from the head over a message stream, prepares the node,
// starts the ranks and watches them to the end. It owns every process of the job on this node, and leaves
// none behind: not when a rank fails, not when the head dies (the stream ends), not for children that made
// sessions of their own.
//
// From the head:
//   environment | inventory {gpus} | claim {ports} | slice {heartbeat, input} | go | exchanged {key, sizes} |
//   stop {urgency, after_failure} | checkpoint {stop} | look | suspend | resume | input | input_end | alive |
//   bye
// To the head:
//   ready | inventory {...} | claimed {taken} | prolog {seconds} + secrets | interface {name} | gpus {ranks}
//   | signalled {signal} | started {rank, pid, program, processors} | output {rank, stream, unfinished} |
//   report {rank, ...} | exited {rank, ...} | failed {rank, code, reason} | exchange {key} | alive |
//   log {text} | mpi_waits | looked {ranks} | input_taken {bytes} | input_closed | stalled {seconds} |
//   resumed {seconds} | suspended | continued | head_silent {seconds} | told_to_end {signal, sender} |
//   error {kind, text} | clean {strays} | done
#pragma once

#include "src/base/environment.hpp"

namespace dlrun::agent {

// Serves one job over the descriptors `in` and `out` (taken over) and returns the process's exit code.
int serve(const Environment& environment, int in, int out);

}  // namespace dlrun::agent
