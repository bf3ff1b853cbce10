// Finds and ends every process below this one, also those that left their session or group. With
// become_subreaper() the orphans of our children come to us, so that what has a rank for an ancestor stays
// findable after the rank died.
#pragma once

#include <vector>

#include <sys/types.h>

#include "src/base/result.hpp"

namespace dlrun {

Result<void> become_subreaper();

// Every living process below this one (zombies are not listed), parents before children; without `except` and
// what is below those.
std::vector<pid_t> descendants(const std::vector<pid_t>& except = {});
// The same below another process.
std::vector<pid_t> descendants_of(pid_t root, const std::vector<pid_t>& except = {});

// Reaps every zombie that came to us as an orphan, but none of `own`: those are reaped by pid where they are
// waited for.
void reap_orphans(const std::vector<pid_t>& own);

}  // namespace dlrun
