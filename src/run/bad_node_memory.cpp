#include "src/run/bad_node_memory.hpp"

#include <algorithm>

#include "schedulers/scheduler.hpp"

namespace dlrun::job {

std::string cluster_of(std::string_view scheduler, const Environment& environment) {
  const Scheduler* row = find_scheduler(scheduler);
  const std::string name =
      row != nullptr && row->cluster_name != nullptr ? row->cluster_name(environment) : std::string();
  return std::string(scheduler) + (name.empty() ? "" : "-" + name);
}

std::vector<health::BadNode> remembered_in(const Allocation& allocation,
                                           const std::vector<health::BadNode>& remembered) {
  std::vector<health::BadNode> out;
  for (const AllocatedNode& node : allocation.nodes)
    for (const health::BadNode& bad : remembered)
      if (bad.host == node.host.get()) out.push_back(bad);
  return out;
}

Allocation without_hosts(Allocation allocation, const std::vector<std::string>& hosts) {
  std::erase_if(allocation.nodes, [&](const AllocatedNode& node) {
    return std::find(hosts.begin(), hosts.end(), node.host.get()) != hosts.end();
  });
  return allocation;
}

std::string learn(const health::BadNodes& memory, health::Report& report, Seconds how_long, Instant now) {
  const std::vector<health::BadNode> known = memory.all(now);
  const Instant until = now + std::chrono::duration_cast<Milliseconds>(how_long);
  std::string problem;
  for (health::NodeReport& node : report.nodes) {
    if (node.fault_of == health::FaultOf::installation) continue;
    if (node.state == health::State::bad && how_long.count() > 0) {
      const auto written = memory.remember({node.host, health::text_of(node, health::State::bad), until});
      if (!written && problem.empty()) problem = written.error().what;
    }
    if (node.state == health::State::bad) continue;
    for (const health::BadNode& bad : known)
      if (bad.host == node.host) memory.forget(bad.host), node.forgotten = bad.reason;
  }
  return problem;
}

}  // namespace dlrun::job
