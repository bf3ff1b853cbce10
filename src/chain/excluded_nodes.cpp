#include "src/chain/excluded_nodes.hpp"

#include <chrono>
#include <cmath>

#include "src/base/units.hpp"
#include "src/health/bad_nodes.hpp"
#include "src/plan/placement.hpp"
#include "src/run/bad_node_memory.hpp"

namespace dlrun::job {
namespace {

// As far as it knows its queues.
bool has_other_nodes(const Submission& scheduler, const plan::Resources& asked,
                     const std::vector<HostName>& excluded, const Environment& environment,
                     const CommandRunner& commands) {
  SubmissionRequest request;
  request.nodes = asked.nodes.value_or(1);
  request.min_nodes = asked.min_nodes;
  request.tasks_per_node = plan::tasks_per_node(asked);
  if (asked.walltime && asked.walltime != kUnlimited)
    request.walltime = std::chrono::seconds(std::llround(std::ceil(asked.walltime->count())));
  request.queue = asked.queue, request.account = asked.account;
  request.extra = asked.extra;
  request.excluded = excluded;
  return scheduler.check_possible(request, environment, commands).has_value();
}

}  // namespace

std::vector<HostName> nodes_to_exclude(const Submission& scheduler, const plan::JobSpec& spec,
                                       std::string_view script, const Environment& environment,
                                       const CommandRunner& commands, Instant now) {
  if (spec.launch.check == plan::CheckUse::off || scheduler.names_nodes(script)) return {};
  std::vector<HostName> out;
  for (const health::BadNode& bad :
       health::BadNodes(environment, cluster_of(scheduler.name(), environment)).all(now))
    out.emplace_back(bad.host);
  if (out.empty() || scheduler.exclude_options(out).empty()) return {};
  if (!has_other_nodes(scheduler, spec.resources, out, environment, commands)) return {};
  return out;
}

}  // namespace dlrun::job
