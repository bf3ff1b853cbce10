// What a job changes in the environment of its ranks, and which variables they get at all.
#pragma once

#include <string>
#include <vector>

#include "src/base/flat_map.hpp"

namespace dlrun::plan {

using EnvironmentChanges = FlatMap<std::string, std::string>;

// Patterns of variables' names: which of dlrun's own environment the ranks get, and which are secrets.
struct EnvironmentRules {
  std::vector<std::string> allow = {}, deny = {}, secrets = {};
};

}  // namespace dlrun::plan
