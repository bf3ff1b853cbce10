// The list of commands: one row each.
#pragma once

#include <span>

#include "src/cli/command.hpp"

namespace dlrun::cli {

std::span<const CommandRow> commands();

/// nullptr where no command has this name.
const CommandRow* find_command(std::string_view name);

/// The names of the commands that people use, for the nearest one to a mistyped name.
std::vector<std::string> command_names();

}  // namespace dlrun::cli
