// AgentAllgather: the one collective between agents. Each node gives a blob under a key; once every node has,
// all blobs are given back in node order and the key is free again. The PMI-1 barrier and the PMIx fence both
// live on it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/types.hpp"

namespace dlrun::job {

class AgentAllgather {
 public:
  explicit AgentAllgather(int nodes) : nodes_(nodes) {}

  // The blobs of all nodes if this one was the last; nothing otherwise. A node's second blob for an open key
  // replaces its first.
  std::optional<std::vector<std::string>> give(const std::string& key, NodeIndex node, std::string blob);

 private:
  int nodes_;
  std::map<std::string, std::map<int, std::string>> open_;
};

}  // namespace dlrun::job
