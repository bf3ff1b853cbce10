// Ranges of nodes: `resources.nodes: 2-8`. The functions read one, tell how many nodes a run takes of an
// allocation, and refuse a range where a smaller run would be another training: one of the builtin runtime
// whose batch depends on the number of ranks. For other frameworks the range itself says that the program
// can have any of these sizes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "src/base/fields.hpp"

namespace dlrun::plan {

struct JobSpec;
struct Resources;

struct NodeRange {
  int least = 1, most = 1;
};

/// Whether the value is written as a range, right or wrong, and not as a number.
bool is_node_range(const yaml::Node& node);

/// "2-8", both from 1 to `limit`. An Error with the place of the value where it is none, or reversed.
Result<NodeRange> read_node_range(const yaml::Node& node, int limit);

/// The fewest nodes that a run of `planned` nodes may go on with, in this attempt or another.
std::size_t fewest_nodes(const Resources& resources, std::size_t planned);

/// How many of `available` nodes a run takes; unset where they are too few.
std::optional<std::size_t> nodes_taken(const Resources& resources, std::size_t available);

/// "4 nodes", "2 to 8 nodes".
std::string nodes_text(const Resources& resources);

/// An Error where the job has a range and its training would depend on the number of nodes.
Result<void> check_node_range(const yaml::Node& value, const JobSpec& spec);

}  // namespace dlrun::plan
