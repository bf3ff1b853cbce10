// Which processors a node's ranks get: the cores that this node lets us use, in hwloc's order (neighbours
// share caches and NUMA nodes), as many for each rank as its share says, and those near its GPU first. It
// only computes; the rank's start applies it.
#pragma once

#include <vector>

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::agent {

using Processors = std::vector<int>;  // logical ones, by the system's numbers

// Processors grouped by core, in topology order, within our affinity mask.
using Cores = std::vector<Processors>;

// hwloc's plug-ins look for I/O devices, which nobody asks for here; loading them (X11, OpenCL, CUDA) takes
// ten times as long as all the rest. Called before any thread is started.
void keep_topology_simple();

// Within our affinity mask, by number; all that a rank needs to know that has the node for itself.
Result<Processors> usable_processors();

// Reads the topology with hwloc.
Result<Cores> usable_cores();

// The processors that share a NUMA node with the PCI device at "00000000:3B:00.0"; empty where nobody
// tells, or where the device is near all of them alike.
Result<Processors> processors_near(const std::string& pci_bus_id);

// The processors that one rank requests.
struct CpuRequest {
  plan::CpuShare share;
  Processors near = {};  // of its GPU; empty: all cores are alike to it
};

// The processors of each request, in order. Each request gets run `share` of `of`: whole cores as long as
// there are enough of them, else single processors; uneven counts give the first shares one more. Shares that
// nobody requests stay free. Two requests never share a core. A request with a GPU takes cores near it first,
// as many as the other requests near that GPU leave; the rest comes from the remaining cores, in order. An
// Error where there are fewer processors than shares (the plan should not have bound these ranks).
Result<std::vector<Processors>> divide(const Cores& cores, const std::vector<CpuRequest>& requests);

}  // namespace dlrun::agent
