#include "src/cli/cmd_allocation.hpp"

#include <algorithm>

#include "schedulers/allocation_file.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/scheduler.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<AllocationCommand> kFileFlag[] = {
    {{.name = "--allocation", .value = "FILE", .help = "show this file: an allocation, or R of Flux"},
     &AllocationCommand::file},
};
constexpr FlagRow<AllocationCommand> kSchedulerFlag[] = {
    {{.name = "--scheduler", .value = "SCHEDULER", .help = "query this scheduler only"},
     &AllocationCommand::scheduler},
};

// Nodes that are alike share a line.
struct NodeRow {
  std::vector<HostName> hosts;
  std::string slots, cpus, gpus;
  bool like(const NodeRow& other) const {
    return slots == other.slots && cpus == other.cpus && gpus == other.gpus;
  }
};

std::string gpu_text(const AllocatedNode& node) {
  if (!node.gpus) return "unknown";
  return node.gpus->empty() ? "none" : join(*node.gpus, ",");
}

// Neighbours that are alike, together: the order of the nodes stays to be seen.
std::vector<NodeRow> rows_of(const Allocation& allocation) {
  std::vector<NodeRow> out;
  for (const AllocatedNode& node : allocation.nodes) {
    NodeRow row{.hosts = {node.host},
                .slots = std::to_string(node.slots),
                .cpus = node.cpus ? std::to_string(*node.cpus) : "unknown",
                .gpus = gpu_text(node)};
    if (!out.empty() && out.back().like(row))
      out.back().hosts.push_back(node.host);
    else
      out.push_back(std::move(row));
  }
  return out;
}

void print_nodes(const Allocation& allocation, Console& console) {
  std::size_t width = 5;
  const std::vector<NodeRow> rows = rows_of(allocation);
  std::vector<std::string> names;
  for (const NodeRow& row : rows) {
    names.push_back(compress_hostlist(row.hosts));
    width = std::max(width, names.back().size());
  }
  const auto line = [&](std::string_view count, std::string_view name, std::string_view slots,
                        std::string_view cpus, std::string_view gpus) {
    return fmt::format("{:>5}  {:<{}}  {:>7}  {:>7}  {}", count, name, width, slots, cpus, gpus);
  };
  console.out(console.tinted_out(line("nodes", "names", "slots", "cpus", "gpus"), Tint::bold));
  for (std::size_t i = 0; i < rows.size(); ++i)
    console.out(
        line(std::to_string(rows[i].hosts.size()), names[i], rows[i].slots, rows[i].cpus, rows[i].gpus));
}

void print(const Allocation& allocation, Console& console) {
  std::string job = allocation.job_id ? ", job " + *allocation.job_id : "";
  if (allocation.array_index) job += fmt::format(", array index {}", *allocation.array_index);
  console.out(fmt::format("scheduler  {}{}", allocation.scheduler, job));
  const std::string_view no_end =
      allocation.scheduler == "local" ? "no limit" : "none known (see the evidence)";
  console.out(fmt::format("end time   {}",
                          allocation.end_time ? format_utc(*allocation.end_time) : std::string(no_end)));
  print_nodes(allocation, console);
  const bool unknown = std::any_of(allocation.nodes.begin(), allocation.nodes.end(),
                                   [](const AllocatedNode& node) { return !node.cpus || !node.gpus; });
  if (unknown && allocation.scheduler != "local")
    console.out("           unknown values are queried from the nodes at the start of a run");
  for (const std::string& line : allocation.evidence)
    console.out(console.tinted_out("evidence   " + line, Tint::dim));
  for (const std::string& line : allocation.warnings)
    console.err(console.tinted_err("dlrun: warning: " + line, Tint::yellow));
}

Result<Allocation> allocation_of(const AllocationCommand& options, const Context& context) {
  if (!options.file.empty()) return allocation_from_file(options.file);
  const SystemCommands commands;
  const SystemClock clock;
  const DiscoveryContext discovery{context.environment, commands, clock,
                                   [&] { return gpus_of_driver(context.environment); },
                                   options.hosts.named()};
  return find_allocation(discovery, options.scheduler);
}

}  // namespace

const char* const AllocationCommand::kExamples = R"(Examples:
  dlrun allocation                            the nodes, processors and GPUs of this job or machine, and their source
  dlrun allocation --json > alloc.json        the same as data: dlrun plan --allocation alloc.json plans for it anywhere
  dlrun allocation --hostfile hosts.txt       what a host file means)";

void AllocationCommand::add(Arguments& arguments) {
  arguments.flags<AllocationCommand>(kFileFlag, *this);
  arguments.flags(host_flags(), hosts);
  arguments.flags<AllocationCommand>(kSchedulerFlag, *this);
}

Result<int> AllocationCommand::run(const Context& context) {
  const Allocation allocation = TRY(allocation_of(*this, context));
  if (context.common.json)
    TRY(context.console.data(to_pretty_text(to_json(allocation))));
  else
    print(allocation, context.console);
  return 0;
}

}  // namespace dlrun::cli
