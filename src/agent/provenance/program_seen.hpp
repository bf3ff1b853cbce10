// See a rank's program as the kernel shows it: not the shell or the wrapper that starts it, but what these
// started, and the libraries that are mapped into it. Reads /proc alone.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "src/agent/provenance/facts.hpp"

namespace dlrun::agent {

/// The process below `rank` that does the work; unset where none is left.
std::optional<ProgramSeen> see_program(pid_t rank);

/// Pure: the libraries among the mappings of /proc/PID/maps, sorted.
std::vector<std::string> libraries_in(std::string_view maps);

/// bash, env, timeout and the like, which start the program and wait for it.
bool is_wrapper(std::string_view executable);

}  // namespace dlrun::agent
