#include "src/agent/binding.hpp"

#include <cerrno>
#include <memory>

#include <hwloc.h>
#include <sched.h>

#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

}  // namespace

Result<Cores> usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return fail(ErrorKind::internal, "sched_getaffinity: {}", system_reason(errno));
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(ErrorKind::internal, "hwloc cannot start");
  const std::unique_ptr<hwloc_topology, DestroyTopology> topology(raw);
  if (hwloc_topology_load(raw) != 0)
    return fail(ErrorKind::internal, "hwloc cannot read this node's topology");
  Cores cores;
  const int count = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(raw, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    std::vector<int> processors;
    for (int p = hwloc_bitmap_first(core->cpuset); p >= 0; p = hwloc_bitmap_next(core->cpuset, p))
      if (p < CPU_SETSIZE && CPU_ISSET(p, &allowed)) processors.push_back(p);
    if (!processors.empty()) cores.push_back(std::move(processors));
  }
  if (cores.empty()) return fail(ErrorKind::internal, "hwloc shows no core that this process may use");
  return cores;
}

Result<std::vector<int>> processors_of(const Cores& cores, const plan::CpuShare& share) {
  std::vector<std::vector<int>> units = cores;
  if (static_cast<int>(units.size()) < share.of) {
    units.clear();
    for (const auto& core : cores)
      for (const int processor : core) units.push_back({processor});
  }
  const auto count = static_cast<int>(units.size());
  if (share.share < 0 || share.share >= share.of || count < share.of)
    return fail(ErrorKind::allocation, "cannot bind rank share {} of {}: this node lets us use {} processors",
                share.share + 1, share.of, count);
  // Uneven counts: the first shares get one unit more.
  const int base = count / share.of, extra = count % share.of;
  const int first = share.share * base + std::min(share.share, extra);
  const int length = base + (share.share < extra ? 1 : 0);
  std::vector<int> out;
  for (int i = first; i < first + length; ++i)
    out.insert(out.end(), units[static_cast<std::size_t>(i)].begin(),
               units[static_cast<std::size_t>(i)].end());
  return out;
}

}  // namespace dlrun::agent
