// The memory policy of a rank as the kernel takes it: which NUMA nodes, of those that this node has. It only
// computes; the rank's start applies it.
#pragma once

#include <filesystem>
#include <optional>

#include "src/agent/binding.hpp"
#include "src/plan/memory_policy.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {

/// Unset where the policy leaves memory to the system. `processors`: of the rank; empty: all of the node. An
/// Error where it names a NUMA node that has no memory here.
Result<std::optional<MemoryBinding>> memory_binding(
    const plan::MemoryPolicy& policy, const Processors& processors,
    const std::filesystem::path& nodes = "/sys/devices/system/node");

/// For this process, and so for the ranks that it starts from now on.
Result<void> apply_huge_pages(plan::HugePages use);

}  // namespace dlrun::agent
