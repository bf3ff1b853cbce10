#include "schedulers/node_file.hpp"

#include "schedulers/hostfile/node_lists.hpp"
#include "src/base/units.hpp"

namespace dlrun {

std::string detect_node_file(const NodeFileVariables& variables, const DiscoveryContext& context) {
  for (const std::string_view variable : {variables.file, variables.job_id})
    if (const auto value = context.environment.find(variable)) return fmt::format("{}={}", variable, *value);
  return {};
}

Result<Allocation> node_file_allocation(const NodeFileVariables& variables, const DiscoveryContext& context) {
  const NamedFile file = TRY(file_of_variable(context.environment, variables.file));
  Allocation out;
  out.scheduler = variables.scheduler;
  out.job_id = context.environment.find(variables.job_id);
  if (const auto index = parse_integer(context.environment.get(variables.array_index), 0, INT32_MAX))
    out.array_index = static_cast<int>(*index);
  out.nodes = TRY(nodes_of_lines(file.text, file.path));
  out.evidence = {
      fmt::format("{}={}: {} nodes", variables.file, file.path, out.nodes.size()),
      fmt::format("{} reports neither the GPUs nor the end of a job: unknown", variables.scheduler)};
  return out;
}

}  // namespace dlrun
