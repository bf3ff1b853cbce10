// Collectives: which way the data of the agents' collectives go: each to the head and the result back to
// each, or through a tree of agents (relay_tree.hpp). A star of ten thousand nodes would have to send 80 MB
// to each of them where a rank gives a kilobyte.
#pragma once

#include "src/plan/plan.hpp"
#include "src/plan/relay_use.hpp"

namespace dlrun::job {

enum class Collectives { by_head, by_tree };

/// Auto is the tree from this number of nodes on.
inline constexpr std::size_t kMinNodesForTree = 65;

/// Of a job whose agents serve no MPI there are none.
Collectives collectives_of(plan::RelayUse use, const plan::Plan& plan);

}  // namespace dlrun::job
