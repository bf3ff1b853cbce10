// Ports: the port of each rank whose role has ports, unique on its node. Each role counts up from its own
// first port; a port that another task of the node has, or that an agent found taken there, is stepped over.
// Whether a port is free on a node is for its agent to find out; a port that the user names is never
// exchanged for another.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/roles.hpp"

namespace dlrun::plan {

// What agents found: host -> port -> who has it, as text ("process 4711 (python3)").
using TakenPorts = std::map<std::string, std::map<int, std::string>>;

Result<void> assign_ports(std::vector<RankPlan>& ranks, const std::vector<Role>& roles,
                          const std::vector<AllocatedNode>& nodes, const TakenPorts& taken);

// A port that must be free on a node: of one of its ranks, or for the rendezvous.
struct PortUse {
  int port = 0;
  Rank rank;  // the rank for which it is held
};
/// The ports of the plan, by node.
std::vector<std::vector<PortUse>> ports_by_node(const Plan& plan);

}  // namespace dlrun::plan
