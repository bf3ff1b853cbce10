#include "src/plan/hypothetical_nodes.hpp"

namespace dlrun::plan {

Allocation hypothetical_allocation(int nodes, std::optional<int> gpus_per_node) {
  Allocation out;
  out.scheduler = kHypotheticalNodes;
  out.evidence.push_back("not inside a batch job: placeholder nodes, as many as are asked for");
  std::optional<std::vector<std::string>> gpus;
  if (gpus_per_node) {
    gpus.emplace();
    for (int i = 0; i < *gpus_per_node; ++i) gpus->push_back(std::to_string(i));
  }
  for (int i = 1; i <= nodes; ++i)
    out.nodes.push_back(
        {.host = HostName(fmt::format("node{:04}", i)), .slots = 1, .cpus = {}, .gpus = gpus});
  return out;
}

}  // namespace dlrun::plan
