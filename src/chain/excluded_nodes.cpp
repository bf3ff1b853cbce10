#include "src/chain/excluded_nodes.hpp"

#include <chrono>
#include <cmath>

#include "src/health/bad_nodes.hpp"
#include "src/run/bad_node_memory.hpp"

namespace dlrun::job {
namespace {

// What the scheduler says of a job of so many nodes, as far as it knows its partitions.
bool has_nodes(const Submission& scheduler, const plan::JobSpec& spec, std::size_t more,
               const Environment& environment, const CommandRunner& commands) {
  SubmissionRequest request;
  request.name = spec.name;
  request.nodes = spec.resources.nodes.value_or(1) + static_cast<int>(more);
  request.queue = spec.resources.queue;
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
  if (!has_nodes(scheduler, spec, out.size(), environment, commands)) return {};
  return out;
}

}  // namespace dlrun::job
