// run_command(): a short command to its end, with its output captured. For checks, preludes and queries:
// things that finish by themselves; a command that outlives its limit is killed with its whole session and is
// an Error.
#pragma once

#include <string>

#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/process/exit_status.hpp"

namespace dlrun {

struct CommandOutput {
  ExitStatus status;
  std::string out, err;
};

struct Command {
  Argv argv;
  Environment environment;
  std::string working_directory = {};
  Seconds limit{60};
};

Result<CommandOutput> run_command(const Command& command);

}  // namespace dlrun
