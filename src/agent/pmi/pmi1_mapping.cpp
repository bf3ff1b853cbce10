#include "src/agent/pmi/pmi1_mapping.hpp"

namespace dlrun::agent {

namespace {

// Clients read lines of 1024 bytes; the rest of the line takes some of them.
constexpr std::size_t kMaxMapping = 960;

struct Block {
  int first_node;
  int nodes;
  int ranks_per_node;
};

// One block for each run of ranks on a node.
std::vector<Block> runs(const std::vector<int>& node_of_rank) {
  std::vector<Block> out;
  for (const int node : node_of_rank) {
    if (!out.empty() && out.back().first_node == node) {
      ++out.back().ranks_per_node;
    } else {
      out.push_back({node, 1, 1});
    }
  }
  return out;
}

// Neighbouring nodes with equally many ranks become one block.
std::vector<Block> merged(const std::vector<Block>& blocks) {
  std::vector<Block> out;
  for (const Block& block : blocks) {
    if (!out.empty() && out.back().first_node + out.back().nodes == block.first_node &&
        out.back().ranks_per_node == block.ranks_per_node) {
      ++out.back().nodes;
    } else {
      out.push_back(block);
    }
  }
  return out;
}

}  // namespace

Result<std::string> pmi1_process_mapping(const std::vector<int>& node_of_rank) {
  std::string text = "(vector";
  for (const Block& block : merged(runs(node_of_rank)))
    text += fmt::format(",({},{},{})", block.first_node, block.nodes, block.ranks_per_node);
  text += ")";
  if (text.size() <= kMaxMapping) return text;
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format("the placement of {} ranks needs {} bytes as a PMI-1 process mapping, and "
                                "clients read {}",
                                node_of_rank.size(), text.size(), kMaxMapping),
            .hint = "place the ranks in blocks, node after node, or use --mpi pmix"});
}

}  // namespace dlrun::agent
