// The support of the tests of launchers.
#pragma once

#include <string>
#include <vector>

#include "src/plan/plan.hpp"

namespace dlrun::test {

// A plan of these nodes, without ranks.
inline plan::Plan plan_of(const std::vector<std::string>& hosts) {
  plan::Plan plan;
  for (const std::string& host : hosts)
    plan.nodes.push_back({.index = NodeIndex(static_cast<int>(plan.nodes.size())), .host = HostName(host)});
  return plan;
}

}  // namespace dlrun::test
