// Open files: how many the agent may have. It holds a log and two pipes for each rank, so it raises its own
// soft limit to the hard one, and its ranks get the user's back. What the hard limit cannot hold is said
// before any rank is started.
#pragma once

#include <sys/resource.h>

#include "src/base/result.hpp"

namespace dlrun::agent {

// The limits as they were.
Result<rlimit> raise_open_files();

// `open`: descriptors that are open already; `ranks`: that are to be started; `limit`: the most that can be
// open.
Result<void> check_open_files(std::size_t open, std::size_t ranks, rlim_t limit);
// The same of this process.
Result<void> check_open_files(std::size_t ranks);

}  // namespace dlrun::agent
