// PMI_process_mapping: which rank is on which node, in the form that MPICH reads; it alone tells MPICH which
// ranks share memory.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::agent {

// "(vector,(0,2,4))": two nodes from node 0 on with four ranks each. An Error where the placement changes
// node so often that the text exceeds what a PMI-1 client can read.
Result<std::string> pmi1_process_mapping(const std::vector<int>& node_of_rank);

}  // namespace dlrun::agent
