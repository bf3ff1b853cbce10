// relay_fence(): a collective of so many agents through their relay tree, with the agents' real decisions and
// the real codec, and strings between them. What sockets and the network need is not in the figures. The
// head has no part in it.
#pragma once

#include <cstddef>

#include "src/base/json.hpp"

namespace dlrun::job {

/// The processor time of this thread.
double cpu_seconds();

/// Levels of the tree; seconds of the slowest way up and down; the most that one agent does.
Json relay_fence(int nodes, std::size_t bytes_per_node);

}  // namespace dlrun::job
