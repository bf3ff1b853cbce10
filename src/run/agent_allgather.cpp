#include "src/run/agent_allgather.hpp"

namespace dlrun::job {

std::optional<std::vector<std::string>> AgentAllgather::give(const std::string& key, NodeIndex node,
                                                             std::string blob) {
  auto& given = open_[key];
  given[node.get()] = std::move(blob);
  if (static_cast<int>(given.size()) < nodes_) return std::nullopt;
  std::vector<std::string> blobs;
  for (auto& [index, value] : given) blobs.push_back(std::move(value));
  open_.erase(key);
  return blobs;
}

}  // namespace dlrun::job
