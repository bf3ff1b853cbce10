#include "src/bench/node_share.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace dlrun::bench {

std::optional<std::vector<std::size_t>> NodeShare::take(std::size_t count) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < busy_.size() && out.size() < count; ++i)
    if (!busy_[i]) out.push_back(i);
  if (out.size() < count) return std::nullopt;
  for (const std::size_t node : out) busy_[node] = true;
  return out;
}

std::size_t NodeShare::free() const {
  return static_cast<std::size_t>(std::count(busy_.begin(), busy_.end(), false));
}

void NodeShare::give_back(const std::vector<std::size_t>& nodes) {
  for (const std::size_t node : nodes) busy_[node] = false;
}

Allocation part_of(const Allocation& whole, const std::vector<std::size_t>& nodes) {
  Allocation out = whole;
  out.nodes.clear();
  out.warnings.clear();  // said once, for the whole
  for (const std::size_t node : nodes) out.nodes.push_back(whole.nodes.at(node));
  out.evidence.push_back(
      fmt::format("{} of {} nodes, for a point of a benchmark", nodes.size(), whole.nodes.size()));
  return out;
}

}  // namespace dlrun::bench
