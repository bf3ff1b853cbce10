// report_error(): the last words of an agent that has no stream to the head, or cannot go on with the one it
// has. Launchers show the standard error of agents. Everything else is told to the head in messages.
#pragma once

#include "src/base/result.hpp"

namespace dlrun::agent {

/// Writes the error to the standard error, and returns the exit code of the process for it.
int report_error(const Error& error);

}  // namespace dlrun::agent
