// Which processors a rank gets: the cores that this node lets us use, in hwloc's order (neighbours share
// caches and NUMA nodes), divided into equal runs. It only computes; the rank's start applies it.
#pragma once

#include <vector>

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::agent {

// Logical processors (the system's numbers) grouped by core, in topology order, within our affinity mask.
using Cores = std::vector<std::vector<int>>;

// Reads the topology with hwloc.
Result<Cores> usable_cores();

// The processors of run `share.share` of `share.of`: whole cores as long as there are enough of them, then
// single processors; an Error where there are fewer processors than shares (the plan should not have bound
// these ranks).
Result<std::vector<int>> processors_of(const Cores& cores, const plan::CpuShare& share);

}  // namespace dlrun::agent
