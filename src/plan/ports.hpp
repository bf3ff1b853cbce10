// Ports: the port of each rank whose role has ports, unique on its node. Each role counts up from its own
// first port; a port that another task of the node has is stepped over. Whether a port is free on the node
// is for the agent to find out.
#pragma once

#include <optional>
#include <vector>

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/roles.hpp"

namespace dlrun::plan {

Result<void> assign_ports(std::vector<RankPlan>& ranks, const std::vector<Role>& roles, std::size_t nodes);

}  // namespace dlrun::plan
