// Memory in common for ranks of one node that can exchange messages already.
#pragma once

#include <optional>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/transport/common_memory.hpp"

namespace dlrun::runtime {

/// So many bytes that all ranks of `node` see, or unset on all ranks of `world` where one of them has none: a
/// container may hide it. All ranks of the world call it, each with the group of its own node.
Result<std::optional<CommonMemory>> share_memory(Communicator& world, Communicator& node, std::size_t bytes);

}  // namespace dlrun::runtime
