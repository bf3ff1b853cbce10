// Expansion: variables in those values of a job file that are paths, and in the words of its command. They
// are expanded once, on the head, from the environment that dlrun was started in and environment.set, so that
// all ranks and the record have the same. What differs from node to node or rank to rank cannot be expanded
// so, and is refused by name; so are secrets, which would be seen in the plan and in ps.
#pragma once

#include <string>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::plan {

// A job that is only submitted now may name variables of the scheduler that it will find when it runs.
enum class SchedulerVariables { must_be_set, may_come };

struct Expansion {
  std::string path;  // "checkpoint.dir", "command[2]", as in plan --explain
  std::string value;
};
struct ExpandedTree {
  yaml::Node tree;
  std::vector<Expansion> changes;
};

// Arguments after "--" were expanded by the user's shell and are left unchanged.
Result<ExpandedTree> expand_variables(yaml::Node tree, const Environment& environment,
                                      SchedulerVariables scheduler);

}  // namespace dlrun::plan
