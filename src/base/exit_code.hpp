// The one table of dlrun's own exit codes (sysexits numbers); man/dlrun.1 shows the same table and a test
// compares them. A program that fails keeps its own code: the first failing rank's, or 128 + N where signal N
// ended it.
#pragma once

#include "src/base/result.hpp"

namespace dlrun {

enum class ExitCode : int {
  done = 0,
  usage = 64,        // bad usage
  input = 65,        // job file or input data malformed
  allocation = 66,   // allocation unreadable or too small for the job
  unavailable = 69,  // could not start: agent, ssh, port
  internal = 70,     // a bug in dlrun
  lost = 71,         // node lost or hang
  io = 74,           // run directory, checkpoint or standard output cannot be written
  again = 75,        // stopped at the walltime or on request with a sound checkpoint: run me again
};

constexpr ExitCode exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return ExitCode::usage;
    case ErrorKind::input:
      return ExitCode::input;
    case ErrorKind::allocation:
      return ExitCode::allocation;
    case ErrorKind::unavailable:
      return ExitCode::unavailable;
    case ErrorKind::lost:
      return ExitCode::lost;
    case ErrorKind::io:
      return ExitCode::io;
    case ErrorKind::internal:
      return ExitCode::internal;
  }
  return ExitCode::internal;
}

constexpr int to_int(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace dlrun
