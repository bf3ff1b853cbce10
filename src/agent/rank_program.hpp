// Which program a rank runs, for hints: not env(1), which is gone a moment later, but what env starts.
// Scripts begin with "#!/usr/bin/env python3", and a rank is looked at right behind its start.
#pragma once

#include <string>

#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

/// The file that the process runs or, where that is env, will run; empty where the kernel does not tell.
std::string program_of(pid_t pid);

/// What env would start, by its command line and its environment; empty where it starts nothing.
std::string program_behind_env(const Argv& argv, const Environment& environment,
                               const std::string& working_directory);

/// What these words would start, for a process that has ended before anybody could look: the file, or the
/// interpreter that its first line names; empty where there is none.
std::string program_started_by(const Argv& argv, const Environment& environment,
                               const std::string& working_directory);

}  // namespace dlrun::agent
