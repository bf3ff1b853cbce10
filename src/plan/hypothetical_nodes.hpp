// Hypothetical nodes: an allocation of nodes that do not exist (node0001, ...), which shows how a job would
// be planned on a cluster of that shape. Nothing is ever run on it.
#pragma once

#include <optional>

#include "schedulers/allocation.hpp"

namespace dlrun::plan {

// The scheduler's name in such an allocation.
inline constexpr const char* kHypotheticalNodes = "hypothetical";

Allocation hypothetical_allocation(int nodes, std::optional<int> gpus_per_node);

}  // namespace dlrun::plan
