// Allocation: the nodes we may use, as one scheduler (or this machine) tells it. Hosts keep the scheduler's
// order and spelling. An unknown value is unset, never 0 or -1; `evidence` says what won and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedulers/gpus/gpu_vendor.hpp"
#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun {

struct AllocatedNode {
  HostName host;
  int slots = 1;  // ranks that the scheduler would start here
  std::optional<int> cpus;
  std::optional<std::vector<std::string>> gpus;  // names as the node knows them: index, UUID or MIG id
  std::optional<int> asked_slots = {};           // of these, that the user asked for by number: a rank each
  std::optional<std::string> address = {};       // what other nodes reach it by, where that is not `host`
  std::optional<GpuVendor> gpu_vendor = {};      // unset: nothing tells
};

struct Allocation {
  std::string scheduler;  // "slurm", "pbs", ..., "local"
  std::optional<std::string> job_id;
  std::optional<int> array_index;
  std::vector<AllocatedNode> nodes;
  std::optional<Instant> end_time;  // unset: no limit
  std::vector<std::string> evidence;
  std::vector<std::string> warnings;  // what a person should know, though the answer stands
};

// The form that tools rely on: schema dlrun.allocation/1.
Json to_json(const Allocation& allocation);
Result<Allocation> allocation_from_json(const Json& json, std::string_view where);

}  // namespace dlrun
