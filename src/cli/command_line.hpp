// Reads a command line into the command that it names, with that command's values in its fields. CLI11 is
// known to command_line.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct CommandLine {
  CommonOptions common;
  std::unique_ptr<Command> command;
};

/// `arguments` without the program's name. An Error (usage) names the word that is wrong and what may have
/// been meant.
Result<CommandLine> read_command_line(const std::vector<std::string>& arguments);

}  // namespace dlrun::cli
