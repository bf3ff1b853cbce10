// The node's prolog (modules, activate, setup lines): run once before the ranks, by sourcing the node
// script, so that what the agent does and what a person does by hand are one text. The environment that comes
// out is what ranks start from. The agent runs it like a rank, with a log and whole-session signals; here is
// what to run and how to read its end.
#pragma once

#include <filesystem>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
#include "src/process/exit_status.hpp"

namespace dlrun::agent {

// The command that runs the prolog of this node's script and leaves the environment in `environment_file`.
Argv prolog_command(const plan::NodeSlice& slice, const std::filesystem::path& environment_file);

// The environment that it left; an Error with the last lines of its log where a line failed.
Result<Environment> prolog_environment(const plan::NodeSlice& slice, const ExitStatus& status,
                                       const std::filesystem::path& environment_file,
                                       const std::string& log_path);

}  // namespace dlrun::agent
