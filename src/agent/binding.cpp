#include "src/agent/binding.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <memory>
#include <set>

#include <hwloc.h>
#include <hwloc/linux.h>
#include <sched.h>

#include "src/base/file.hpp"
#include "src/base/library_setting.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

Result<Topology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail(ErrorKind::internal, "hwloc cannot start");
  Topology topology(raw);
  // The kernel tells all of it; asking the processors as well would move us over all of them.
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  if (hwloc_topology_load(raw) != 0)
    return fail(ErrorKind::internal, "hwloc cannot read this node's topology");
  return topology;
}

}  // namespace

void keep_topology_simple() {
  set_for_libraries("HWLOC_PLUGINS_PATH", "");
}

Result<Processors> usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return fail(ErrorKind::internal, "sched_getaffinity: {}", system_reason(errno));
  Processors out;
  for (int p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &allowed)) out.push_back(p);
  return out;
}

Result<Cores> usable_cores() {
  const Processors allowed = TRY(usable_processors());
  const Topology topology = TRY(load_topology());
  const hwloc_topology_t raw = topology.get();
  Cores cores;
  const int count = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(raw, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    std::vector<int> processors;
    for (int p = hwloc_bitmap_first(core->cpuset); p >= 0; p = hwloc_bitmap_next(core->cpuset, p))
      if (std::binary_search(allowed.begin(), allowed.end(), p)) processors.push_back(p);
    if (!processors.empty()) cores.push_back(std::move(processors));
  }
  if (cores.empty()) return fail(ErrorKind::internal, "hwloc shows no core that this process may use");
  return cores;
}

// The kernel says which processors are near a device. Asking hwloc for the whole PCI bus would make its
// plug-ins start the GPU's own libraries.
Result<Processors> processors_near(const std::string& pci_bus_id) {
  std::string name = lower(pci_bus_id);
  if (name.size() == 16)
    name = name.substr(4);  // NVML writes the domain with eight digits, the kernel with four
  if (name.find('/') != std::string::npos) return Processors{};
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> near(hwloc_bitmap_alloc(),
                                                                           hwloc_bitmap_free);
  const std::string path = "/sys/bus/pci/devices/" + name + "/local_cpus";
  if (!near || hwloc_linux_read_path_as_cpumask(path.c_str(), near.get()) != 0) return Processors{};
  const Topology topology = TRY(load_topology());
  if (hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(topology.get()), near.get()) != 0)
    return Processors{};
  Processors out;
  for (int p = hwloc_bitmap_first(near.get()); p >= 0; p = hwloc_bitmap_next(near.get(), p)) out.push_back(p);
  return out;
}

namespace {

// The node's cores, or its single processors where there are fewer cores than shares; each is given once.
class Units {
 public:
  Units(const Cores& cores, int shares) : units_(cores) {
    if (static_cast<int>(units_.size()) < shares) {
      units_.clear();
      for (const Processors& core : cores)
        for (const int processor : core) units_.push_back({processor});
    }
    taken_.resize(units_.size(), false);
  }

  int count() const { return static_cast<int>(units_.size()); }
  int count_near(const Processors& near) const {
    int out = 0;
    for (const Processors& unit : units_) out += is_near(unit, near) ? 1 : 0;
    return out;
  }
  // Up to `most` free units, in order; only those near, where `near` is not empty. How many were taken.
  int take(int most, const Processors& near, Processors& into) {
    int taken = 0;
    for (std::size_t i = 0; i < units_.size() && taken < most; ++i) {
      if (taken_[i] || (!near.empty() && !is_near(units_[i], near))) continue;
      taken_[i] = true;
      into.insert(into.end(), units_[i].begin(), units_[i].end());
      ++taken;
    }
    return taken;
  }
  // Unit runs as if nobody had a GPU: share s of `of` is a run of neighbours.
  static int quota(int count, const plan::CpuShare& share) {
    return count / share.of + (share.share < count % share.of ? 1 : 0);
  }

 private:
  static bool is_near(const Processors& unit, const Processors& near) {
    return std::find(near.begin(), near.end(), unit.front()) != near.end();
  }
  std::vector<Processors> units_;
  std::vector<bool> taken_;
};

// What the ranks whose GPUs have the same neighbours leave to each of them.
int near_part(const Units& units, const std::vector<CpuRequest>& requests, std::size_t which) {
  int neighbours = 0, before = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].near != requests[which].near) continue;
    if (i < which) ++before;
    ++neighbours;
  }
  return Units::quota(units.count_near(requests[which].near), {.share = before, .of = neighbours});
}

Result<void> check(const Units& units, const std::vector<CpuRequest>& requests) {
  for (const CpuRequest& request : requests)
    if (request.share.share < 0 || request.share.share >= request.share.of ||
        units.count() < request.share.of)
      return fail(ErrorKind::allocation,
                  "cannot bind rank share {} of {}: this node lets us use {} processors",
                  request.share.share + 1, request.share.of, units.count());
  return {};
}

}  // namespace

namespace {

std::vector<Processors> give(Units units, const std::vector<CpuRequest>& requests) {
  std::vector<Processors> out(requests.size());
  std::vector<int> missing;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    missing.push_back(Units::quota(units.count(), requests[i].share));
    if (requests[i].near.empty()) continue;
    missing[i] -= units.take(std::min(missing[i], near_part(units, requests, i)), requests[i].near, out[i]);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) units.take(missing[i], {}, out[i]);
  return out;
}

// One request for each share, by number: those that nobody has here are another agent's. Empty where requests
// are no part of one division.
std::vector<CpuRequest> with_others(const std::vector<CpuRequest>& requests, int shares) {
  std::vector<CpuRequest> out;
  for (int share = 0; share < shares; ++share) out.push_back({{.share = share, .of = shares}});
  std::set<int> seen;
  for (const CpuRequest& request : requests) {
    if (request.share.of != shares || !seen.insert(request.share.share).second) return {};
    out[static_cast<std::size_t>(request.share.share)] = request;
  }
  return out;
}

}  // namespace

Result<std::vector<Processors>> divide(const Cores& cores, const std::vector<CpuRequest>& requests) {
  int shares = 1;
  for (const CpuRequest& request : requests) shares = std::max(shares, request.share.of);
  const Units units(cores, shares);
  TRY(check(units, requests));
  if (static_cast<int>(requests.size()) >= shares) return give(units, requests);
  const std::vector<CpuRequest> all = with_others(requests, shares);
  if (all.empty()) return give(units, requests);
  const std::vector<Processors> given = give(units, all);
  std::vector<Processors> out;
  for (const CpuRequest& request : requests)
    out.push_back(given[static_cast<std::size_t>(request.share.share)]);
  return out;
}

}  // namespace dlrun::agent
