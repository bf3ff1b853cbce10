// NodeUsageMeter: how busy this node is, as the kernel tells it of the whole machine: processors and network
// since the last time it was asked, memory now. What the kernel does not tell is null, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"

namespace dlrun::agent {

/// Counters of /proc at one time.
struct NodeCounters {
  std::optional<std::uint64_t> busy, total;                // of all processors, in ticks: /proc/stat
  std::optional<std::uint64_t> received, sent;             // bytes, all interfaces but lo: /proc/net/dev
  std::optional<std::uint64_t> memory_used, memory_total;  // bytes: /proc/meminfo
};
/// Pure: the texts of these files.
NodeCounters read_counters(std::string_view stat, std::string_view net_dev, std::string_view meminfo);
/// Pure: the members of the message NodeUsage.
Json usage_between(const NodeCounters& before, const NodeCounters& after, Seconds between);

class NodeUsageMeter {
 public:
  NodeUsageMeter();
  /// Since the last call, or since it was made.
  Json measure();

 private:
  NodeCounters last_;
  Ticks when_;
};

}  // namespace dlrun::agent
