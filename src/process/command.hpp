// run_command(): a short command to its end, with its output captured. For checks, prologs and queries:
// things that finish by themselves; a command that outlives its limit, or that runs while a stop signal is
// held, is killed with its whole session and is an Error.
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

// Who runs commands for code that only decides: tests answer with recorded output.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // An Error where the program is not there or outlives its limit; a failing one is an output.
  virtual Result<CommandOutput> run(const Command& command) const = 0;
};

class SystemCommands final : public CommandRunner {
 public:
  Result<CommandOutput> run(const Command& command) const override { return run_command(command); }
};

}  // namespace dlrun
