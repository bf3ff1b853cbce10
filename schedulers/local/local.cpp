// This machine as an allocation of one node, with the cores that this process may use and the GPUs that the
// driver lists. It has no job id and no end time, and never a second node.
#include "schedulers/local/local.hpp"

#include <sched.h>

#include "schedulers/gpus/gpus.hpp"
#include "src/base/host_name.hpp"

namespace dlrun {
namespace {

// The cores in our affinity mask: what a container or taskset leaves us, not what the machine has.
Result<int> allowed_cores() {
  constexpr int largest = 1 << 20;
  for (int cores = 1024; cores <= largest; cores *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(cores);
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cores));
    if (set == nullptr) break;
    const bool known = ::sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return fail(ErrorKind::allocation, "the kernel does not report the cores of this process");
}

std::string detect_local(const DiscoveryContext&) {
  return "not inside a batch job: only this machine";
}

}  // namespace

Result<Allocation> local_allocation(const DiscoveryContext& context) {
  const std::string host = host_name();
  if (host.empty()) return fail(ErrorKind::allocation, "this machine has no host name");
  const int cores = TRY(allowed_cores());
  const FoundGpus gpus = usable_gpus(context.driver_gpus(), context.environment);
  Allocation out;
  out.scheduler = "local";
  out.nodes.push_back(
      {.host = HostName(host), .slots = cores, .cpus = cores, .gpus = gpus.names, .gpu_vendor = gpus.vendor});
  out.evidence = {"host name " + host, fmt::format("affinity mask: {} cores", cores), gpus.evidence};
  if (gpus.warning) out.warnings.push_back(*gpus.warning);
  return out;
}

Scheduler local_scheduler() {
  return {.name = "local", .title = "local", .detect = detect_local, .allocation = local_allocation};
}

}  // namespace dlrun
