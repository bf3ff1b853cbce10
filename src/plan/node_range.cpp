#include "src/plan/node_range.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/role_tasks.hpp"

namespace dlrun::plan {

bool is_node_range(const yaml::Node& node) {
  return node.kind == yaml::Kind::scalar && node.scalar.find('-', 1) != std::string::npos &&
         is_digit(node.scalar.front());
}

Result<NodeRange> read_node_range(const yaml::Node& node, int limit) {
  const std::string& text = node.scalar;
  const std::size_t dash = text.find('-');
  const auto least = parse_integer(std::string_view(text).substr(0, dash), 1, limit);
  const auto most = parse_integer(std::string_view(text).substr(dash + 1), 1, limit);
  if (!least || !most)
    return yaml::error_at(node, fmt::format("resources.nodes: '{}' is not a range of nodes", text),
                          fmt::format("write FEWEST-MOST, each from 1 to {}, for example 2-8", limit));
  if (*least > *most)
    return yaml::error_at(node, fmt::format("resources.nodes: '{}' ends before it begins", text),
                          fmt::format("write {}-{}", *most, *least));
  return NodeRange{static_cast<int>(*least), static_cast<int>(*most)};
}

std::size_t fewest_nodes(const Resources& resources, std::size_t planned) {
  return resources.min_nodes ? static_cast<std::size_t>(*resources.min_nodes) : planned;
}

std::optional<std::size_t> nodes_taken(const Resources& resources, std::size_t available) {
  if (!resources.nodes) return available;
  const auto most = static_cast<std::size_t>(*resources.nodes);
  if (available < fewest_nodes(resources, most)) return std::nullopt;
  return std::min(available, most);
}

std::string nodes_text(const Resources& resources) {
  const auto most = static_cast<std::size_t>(resources.nodes.value_or(1));
  return resources.min_nodes ? fmt::format("{} to {}", *resources.min_nodes, count_text(most, "node"))
                             : count_text(most, "node");
}

Result<void> check_node_range(const yaml::Node& value, const JobSpec& spec) {
  if (!spec.resources.min_nodes || spec.framework != "builtin") return {};
  if (spec.train.find("shards") != nullptr || spec.elastic) return {};
  return yaml::error_at(
      value,
      fmt::format("resources.nodes is the range {}, and without train.shards the training depends on the "
                  "number of nodes",
                  value.scalar),
      "set train.shards, the number of parts of a global batch: the result is then the same on any number");
}

}  // namespace dlrun::plan
