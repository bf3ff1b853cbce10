// Which names mean the same node. A short name and a full one (n1, n1.cluster.example) do where the list
// leaves no doubt; two full names never do because their first labels are equal, and an address is only ever
// equal to itself, never shortened at a dot. Names are compared as DNS does, without regard to case. Nothing
// is resolved: a name server that is slow, absent or wrong must not decide who is who. The caller keeps the
// scheduler's spelling for launching.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun {

bool is_address(std::string_view name);  // 10.0.0.1, fe80::1
// An address of the kind that only an inner network knows: 10.*, 172.16-31.*, 192.168.*, 100.64-127.*,
// fc00::/7.
bool is_private_address(std::string_view name);
bool is_loopback(std::string_view name);  // localhost and its spellings, 127.*, ::1
// Up to the first dot; an address whole.
std::string_view first_label(std::string_view name);

// Finds nodes of one list by any of their names.
class NodeFinder {
 public:
  explicit NodeFinder(std::span<const HostName> nodes);

  // The index of the node that `name` denotes: the node with that spelling, else the only node where one name
  // is a prefix of the other (n1 and n1.cluster). Unset if there is none; an Error (allocation) that lists
  // the candidates if there are several.
  Result<std::optional<std::size_t>> find(std::string_view name) const;

  // The node with this first label, if only one has it: for a machine that calls itself by another network's
  // name. Only for the question "which of these am I", where the machine is known to be one of them.
  std::optional<std::size_t> find_by_label(std::string_view name) const;

 private:
  std::vector<std::string> names_;                                      // in lower case
  std::unordered_map<std::string, std::vector<std::size_t>> by_label_;  // positions, ascending
};

// For each name of a list that may repeat nodes under several spellings: the position of the first name of
// the same node. An Error (allocation) where a short name may mean several of the full ones.
Result<std::vector<std::size_t>> same_nodes(std::span<const HostName> names);

// What a machine knows of itself.
struct MachineNames {
  std::vector<std::string> names;      // the host name first, then what /etc/hosts calls it
  std::vector<std::string> addresses;  // of its interfaces, without loopback
};
MachineNames this_machine();

// Whether `name` certainly denotes this machine: loopback, one of its names or one of its addresses.
bool is_machine(std::string_view name, const MachineNames& machine);

// The index of this machine in the list: by its names, its addresses, then by first label. Unset if it is not
// in the list (a login node); an Error (allocation) if several nodes match.
Result<std::optional<std::size_t>> find_machine(const NodeFinder& nodes, const MachineNames& machine);

}  // namespace dlrun
