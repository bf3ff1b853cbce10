// See graph_checks.hpp.
#include "runtime/train/graph_checks.hpp"

#include <algorithm>

#include <unistd.h>

#include "runtime/base/name_pattern.hpp"
#include "runtime/data/short_list.hpp"
#include "runtime/graph/operators/traits.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr double kHopeless = 0x1p44;  // bytes: 16 TiB

std::vector<std::string> parameter_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node& node : graph.nodes) {
    if (node.weights != Weights::own) continue;
    for (const ParameterRule& rule : parameters_of(graph, node))
      out.push_back(node.name + std::string(rule.part));
  }
  return out;
}

std::vector<std::string> statistic_names(const Graph& graph) {
  std::vector<std::string> out;
  for (const Node& node : graph.nodes)
    for (const StatisticRule& rule : statistics_of(graph, node))
      out.push_back(node.name + std::string(rule.part));
  return out;
}

std::uint64_t memory_of_this_machine() {
  return static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
         static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
}

}  // namespace

Result<void> check_server_count(const Graph& graph, int servers, const std::string& where) {
  const std::size_t tensors = parameter_names(graph).size();
  if (static_cast<std::size_t>(servers) <= tensors) return {};
  return bad_input(where,
                   fmt::format("roles.ps has {} servers, but the model has {} tensors to place on them: one "
                               "would have nothing",
                               servers, tensors),
                   "use fewer servers, or train.parameter-server.placement: split");
}

Result<void> check_patterns(const Graph& graph, const std::vector<ParameterPattern>& patterns) {
  const std::vector<std::string> names = parameter_names(graph), statistics = statistic_names(graph);
  for (const ParameterPattern& one : patterns) {
    const bool with_statistics = one.of == ParameterPattern::Of::tensors;
    const auto is_meant = [&](const std::string& name) { return matches(one.pattern, name); };
    if (std::any_of(names.begin(), names.end(), is_meant)) continue;
    if (with_statistics && std::any_of(statistics.begin(), statistics.end(), is_meant)) continue;
    return bad_input(one.where,
                     fmt::format("{}: no {} is named '{}'", one.key, with_statistics ? "tensor" : "parameter",
                                 one.pattern),
                     fmt::format("{} has {}", graph.model, short_list(names)));
  }
  return {};
}

Result<void> check_state_size(const Graph& graph, std::size_t numbers_each) {
  const std::int64_t parameters = parameter_count(graph);
  const double bytes = static_cast<double>(parameters) * static_cast<double>(numbers_each * sizeof(float));
  if (bytes <= kHopeless) return {};
  return fail(
      Error{.kind = ErrorKind::input,
            .what = fmt::format(
                "model '{}' has {} parameters: with their gradients and the optimizer's state, each "
                "rank needs {}, and this machine has {} of memory",
                graph.model, parameters, format_size(static_cast<std::uint64_t>(std::min(bytes, 0x1p63))),
                format_size(memory_of_this_machine())),
            .hint = "make the model smaller: fewer features, hidden features or layers"});
}

}  // namespace dlrun::runtime
