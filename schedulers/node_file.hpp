// Schedulers that tell a job little more than the file that a variable names, with one line for each core or
// rank granted: neither its GPUs nor its end. What they have in common.
#pragma once

#include <string_view>

#include "schedulers/allocation.hpp"
#include "schedulers/discovery.hpp"

namespace dlrun {

struct NodeFileVariables {
  std::string_view scheduler, file, job_id, array_index;
};

std::string detect_node_file(const NodeFileVariables& variables, const DiscoveryContext& context);

Result<Allocation> node_file_allocation(const NodeFileVariables& variables, const DiscoveryContext& context);

}  // namespace dlrun
