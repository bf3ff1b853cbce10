// The strong types that more than one layer speaks of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/strong.hpp"

namespace dlrun {

using Rank = Strong<struct RankTag, int>;            // 0 .. world size - 1, dense over the whole job
using LocalRank = Strong<struct LocalRankTag, int>;  // 0 .. ranks of this node - 1
using NodeIndex = Strong<struct NodeIndexTag, int>;  // position of a node in the plan
using HostName = Strong<struct HostNameTag, std::string>;
using Port = Strong<struct PortTag, std::uint16_t>;

using Argv = std::vector<std::string>;

}  // namespace dlrun
