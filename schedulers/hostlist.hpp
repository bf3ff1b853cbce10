// The host-list language of Slurm: n[008-011,15],rack[0-1]node[2-3]-ib. Expansion gives names in Slurm's
// order and keeps duplicates; compression gives the shortest list that expands to the same names in the same
// order. Text that Slurm's own parser reads leniently (an open range, a blank) is refused: it was cut or
// mistyped, and a launcher must not run on what is left.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun {

// No cluster has more hosts; a list that names more is refused before anything is allocated.
inline constexpr std::size_t kMostHosts = std::size_t{1} << 22;

// An Error (input) shows the text with a caret below the place that is wrong.
Result<std::vector<HostName>> expand_hostlist(std::string_view text, std::size_t most = kMostHosts);
// How many names expand_hostlist() would give, without making them.
Result<std::size_t> count_hostlist(std::string_view text, std::size_t most = kMostHosts);
std::string compress_hostlist(std::span<const HostName> hosts);

}  // namespace dlrun
