// HeadStatus: what the head of a run says of itself in status.json while it lives, and for the last time at
// its end: who it is, what the run does and how far it is. Whoever looks from elsewhere (dlrun status) reads
// it. `beats` counts up with each writing, so that a reader on another machine can tell a live head from one
// that died, whatever the clocks say. Its schema is dlrun.head/1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"
#include "src/base/process_identity.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

/// How often the head writes it.
inline constexpr Seconds kHeadStatusInterval{2};

enum class HeadStage { starting, running, stopping, ended };
std::string_view word_of(HeadStage stage);

/// The rank that has done the fewest steps, where others have done more.
struct SlowestRank {
  int rank = 0;
  std::string host;
  std::int64_t step = 0, behind = 0;  // behind the fastest one
};

/// What an agent tells of its node; unset: it cannot tell.
struct NodeUsage {
  std::string host;
  std::optional<double> cpu;                               // share of its cores that work, 0 to 1
  std::optional<std::uint64_t> memory_used, memory_total;  // bytes
  std::optional<double> received, sent;                    // bytes per second, without the loopback
  std::optional<double> gpu;                               // mean of its GPUs, 0 to 1
  std::optional<std::uint64_t> gpu_memory_used, gpu_memory_total;
};

struct HeadStatus {
  ProcessIdentity process;
  std::string name, job_id, framework, scheduler;
  std::optional<std::string> scheduler_job;
  std::size_t nodes = 0, ranks = 0;
  int attempt = 1;
  Instant began, written;
  std::uint64_t beats = 0;
  HeadStage stage = HeadStage::starting;
  std::string phase;                            // "training", "running 2 ranks"
  Json progress = {};                           // rank 0's latest report of a step; null: none
  std::optional<double> steps_per_second = {};  // of the last half minute
  std::optional<Seconds> left = {};             // until the last step, at this pace
  std::optional<Instant> walltime_end = {};
  std::optional<SlowestRank> slowest = {};
  Json stragglers = Json::array();  // ranks that take longer than the others; objects (stragglers.hpp)
  Json losses = Json::array();      // ranks that an elastic job goes on without; as in the record
  Json joins = Json::array();       // ranks that joined it; as in the record
  std::vector<NodeUsage> usage = {};
  std::optional<int> exit_code = {};  // once it has ended
  bool stopped = false;               // it was asked to end, and nothing had failed
  std::string reason = {};
};

/// What is absent or null stays unset.
Result<NodeUsage> node_usage_from_json(const Json& json, const std::string& where);
Json to_json(const HeadStatus& status);
Result<HeadStatus> head_status_from_json(const Json& json, const std::string& where);

}  // namespace dlrun::job
