// Host files and --hosts: the nodes that a person names. One reader takes the dialects of Open MPI (slots=,
// max_slots=), MPICH (HOST:N), DeepSpeed (slots=), Horovod (a:2,b:2) and plain names, with host lists
// anywhere; man/dlrun-allocation.1 has the grammar. A word that fits none of them is an error with its place:
// it is never skipped, for a file that is read in part names fewer nodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/allocation.hpp"
#include "schedulers/node_identity.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// One name as it stands in the text, host lists expanded; equal names are not yet one node.
struct HostEntry {
  HostName host;
  std::optional<int> slots, most_slots, cpus, gpus;
  std::optional<std::string> address;
  std::size_t line = 1;
};

struct HostEntries {
  std::string source;  // "hosts.txt" or "--hosts"
  std::vector<HostEntry> entries;
  std::vector<std::string> warnings;
};

Result<HostEntries> read_hostfile(std::string_view text, std::string_view name);
Result<HostEntries> read_host_words(std::string_view words);  // --hosts a:2,b:2

// Gives each entry the address of the same position in the second file. An Error where their numbers differ.
Result<void> add_addresses(HostEntries& entries, const HostEntries& addresses);

// One node for each host, in first-seen order. Lines of the same host add up: a name without a count is one
// slot, a limit without slots is that many.
Result<Allocation> merge_entries(const HostEntries& entries);

// What people should know of names that are this machine: it would be two nodes, or none that others reach.
std::vector<std::string> locality_warnings(const std::vector<AllocatedNode>& nodes,
                                           const MachineNames& machine);

}  // namespace dlrun
