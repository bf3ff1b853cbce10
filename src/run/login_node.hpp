// Whether a run without an allocation was started where jobs are submitted: a scheduler is set up on this
// machine and we are in none of its jobs. Training there is rarely meant, and sites forbid it.
#pragma once

#include <optional>
#include <string>

#include "src/run/prepare.hpp"

namespace dlrun::job {

// The warning, without "warning: ". None where a user named this machine by --scheduler local.
std::optional<std::string> login_node_warning(const Request& request, const Allocation& allocation);

}  // namespace dlrun::job
