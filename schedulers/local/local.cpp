// This machine as an allocation of one node: the cores that we may run on, the GPUs that its driver tells. It
// has no job id and no end. It never invents a second node.

#include <sched.h>

#include "schedulers/gpus/gpus.hpp"
#include "schedulers/scheduler.hpp"
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
  return fail(ErrorKind::allocation, "the kernel does not tell which cores we may use");
}

class Local final : public Scheduler {
 public:
  std::string_view name() const override { return "local"; }
  std::string inside(const Surroundings&) const override {
    return "no scheduler's job here: this machine alone";
  }
  Result<Allocation> allocation(const Surroundings& surroundings) const override {
    const std::string host = host_name();
    if (host.empty()) return fail(ErrorKind::allocation, "this machine does not tell its host name");
    const int cores = TRY(allowed_cores());
    const FoundGpus gpus = usable_gpus(surroundings.driver_gpus(), surroundings.environment);
    Allocation out;
    out.scheduler = "local";
    out.nodes.push_back({.host = HostName(host), .slots = cores, .cpus = cores, .gpus = gpus.names});
    out.evidence = {"host name " + host, fmt::format("affinity mask: {} cores", cores), gpus.evidence};
    if (gpus.warning) out.warnings.push_back(*gpus.warning);
    return out;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_local_scheduler() {
  return std::make_unique<Local>();
}

}  // namespace dlrun
