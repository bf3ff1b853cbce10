#include "src/bench/predict/network.hpp"

#include <algorithm>

#include "src/base/strings.hpp"

namespace dlrun::bench::predict {
namespace {

// Copies through shared memory: one core of a server copies 8 to 12 GB/s.
constexpr Link kSharedMemory{.latency = 1e-6, .bytes_per_second = 1e10};

constexpr Network kNetworks[] = {
    // 9.4 Gb/s is what TCP leaves of 10 Gb/s with frames of 1,500 bytes; 30 µs is a usual half round trip of
    // it.
    {"ethernet-10g", "10 Gb/s Ethernet with TCP", {30e-6, 1.18e9}, kSharedMemory},
    // Alverson et al., "Cray XC Series Network" (WP-Aries01-1112): 10 GB/s into the network per node, 1.3 µs
    // for MPI.
    {"aries", "Cray Aries", {1.3e-6, 1e10}, kSharedMemory},
    // ConnectX-6 (data sheet): 200 Gb/s; 1 µs for MPI over it, and 24 of 25 GB/s, as the OSU benchmarks show.
    {"hdr", "HDR InfiniBand, one adapter per node", {1e-6, 2.4e10}, kSharedMemory},
    // H100 and H200 (data sheet): NVLink 4, 450 GB/s per GPU and direction. ConnectX-7: 400 Gb/s, one per
    // GPU, eight
    // per node. NCCL adds about 5 µs per step between nodes and 2 µs within one.
    {"nvlink-ndr", "NVLink 4 and eight NDR adapters per node", {5e-6, 4e11}, {2e-6, 4.5e11}},
};

}  // namespace

std::span<const Network> networks() {
  return kNetworks;
}

Result<Network> find_network(const std::string& name) {
  const auto found = std::find_if(std::begin(kNetworks), std::end(kNetworks),
                                  [&](const Network& each) { return each.name == name; });
  if (found != std::end(kNetworks)) return *found;
  std::vector<std::string> names;
  for (const Network& each : kNetworks) names.emplace_back(each.name);
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("unknown network '{}'; expected {}", name, join(names, ", ")),
                    .hint = did_you_mean(name, names)});
}

}  // namespace dlrun::bench::predict
