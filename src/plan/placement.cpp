#include "src/plan/placement.hpp"

#include <algorithm>

#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

using Gpus = std::vector<std::string>;

std::string hosts_text(const std::vector<AllocatedNode>& nodes) {
  constexpr std::size_t most = 8;
  std::vector<std::string> names;
  for (const AllocatedNode& node : nodes) names.push_back(node.host.get());
  if (names.size() <= most) return join(names, ", ");
  const std::size_t left_out = names.size() - most;
  names.resize(most);
  return fmt::format("{}, and {} more", join(names, ", "), left_out);
}

std::string count_text(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Result<std::vector<AllocatedNode>> choose_nodes(const JobSpec& spec, const Allocation& allocation) {
  std::vector<AllocatedNode> nodes = allocation.nodes;
  if (nodes.empty())
    return fail(ErrorKind::allocation, "the allocation ({}) has no nodes", allocation.scheduler);
  if (!spec.resources.nodes) return nodes;
  const auto asked = static_cast<std::size_t>(*spec.resources.nodes);
  if (nodes.size() < asked) {
    const bool local = allocation.scheduler == "local";
    return fail(Error{
        .kind = ErrorKind::allocation,
        .what = fmt::format("the job asks for {} and {} {}: {}", count_text(asked, "node"),
                            local ? "this machine is" : "the allocation has",
                            nodes.size() == 1 ? "one" : std::to_string(nodes.size()), hosts_text(nodes)),
        .where = place_of(spec, "resources.nodes"),
        .hint = local ? "run it inside a scheduler's job of that size, or with --nodes 1"
                      : fmt::format("ask the scheduler for {}, or run with --nodes {}",
                                    count_text(asked, "node"), nodes.size())});
  }
  nodes.resize(asked);
  return nodes;
}

// Every node must have the GPUs; all that have not are named at once.
Result<void> check_gpus(const JobSpec& spec, const std::vector<AllocatedNode>& nodes) {
  const auto asked = static_cast<std::size_t>(spec.resources.gpus_per_node.value_or(0));
  Error error{.kind = ErrorKind::allocation,
              .what = {},
              .where = place_of(spec, "resources.gpus-per-node"),
              .hint = "ask for what is there with --gpus-per-node, or get other nodes"};
  for (const AllocatedNode& node : nodes) {
    if (node.gpus && node.gpus->size() >= asked) continue;
    error.also.push_back(!node.gpus
                             ? fmt::format("{}: nothing tells its GPUs", node.host)
                             : fmt::format("{} has {}{}", node.host, count_text(node.gpus->size(), "GPU"),
                                           node.gpus->empty() ? "" : ": " + join(*node.gpus, ", ")));
  }
  if (asked == 0 || error.also.empty()) return {};
  error.what = fmt::format("the job asks for {} a node, and {} of {} not enough", count_text(asked, "GPU"),
                           error.also.size(),
                           count_text(nodes.size(), "node") + (error.also.size() == 1 ? " has" : " have"));
  return fail(std::move(error));
}

// GPUs must be divided among the tasks without remainder: a task with less would train another model's speed.
Result<int> gpus_per_task(const JobSpec& spec, int tasks) {
  const int gpus = spec.resources.gpus_per_node.value_or(0);
  if (gpus == 0 || gpus % tasks == 0) return gpus / tasks;
  std::string place = place_of(spec, "resources.tasks-per-node");
  if (place.empty()) place = place_of(spec, "resources.gpus-per-node");
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("{} a node cannot be shared out equally among {}",
                                        count_text(static_cast<std::size_t>(gpus), "GPU"),
                                        count_text(static_cast<std::size_t>(tasks), "task")),
                    .where = std::move(place),
                    .hint = gpus < tasks ? fmt::format("use --tasks-per-node {}, one task a GPU", gpus)
                                         : "choose a number of tasks that divides the number of GPUs"});
}

Result<void> check_cores(const JobSpec& spec, const std::vector<AllocatedNode>& nodes, int tasks) {
  if (!spec.resources.cpus_per_task) return {};
  const std::int64_t asked = static_cast<std::int64_t>(*spec.resources.cpus_per_task) * tasks;
  for (const AllocatedNode& node : nodes)
    if (node.cpus && *node.cpus < asked)
      return fail(
          Error{.kind = ErrorKind::allocation,
                .what = fmt::format("{} of {} cores need {} cores, and {} has {}",
                                    count_text(static_cast<std::size_t>(tasks), "task"),
                                    *spec.resources.cpus_per_task, asked, node.host, *node.cpus),
                .where = place_of(spec, "resources.cpus-per-task"),
                .hint = "ask for fewer cores a task, or leave cpus-per-task out to share what is there"});
  return {};
}

struct CoreShare {
  std::optional<int> cores;
  std::optional<int> shares;  // into how many equal runs the node's cores are divided; nothing: no binding
};

// More tasks than cores share them all and are not bound: two ranks on one core would wait for each other.
CoreShare core_share(const JobSpec& spec, const AllocatedNode& node, int tasks) {
  CoreShare out;
  out.cores = spec.resources.cpus_per_task;
  if (!node.cpus) return out;
  if (!out.cores) out.cores = std::max(1, *node.cpus / tasks);
  if (spec.launch.bind && tasks <= *node.cpus)
    out.shares = spec.resources.cpus_per_task ? *node.cpus / *out.cores : tasks;
  return out;
}

std::optional<Gpus> gpus_of_task(const JobSpec& spec, const AllocatedNode& node, int task, int each) {
  if (!spec.resources.gpus_per_node) return std::nullopt;
  if (each == 0) return Gpus{};
  const auto first = node.gpus->begin() + static_cast<std::ptrdiff_t>(task) * each;
  return Gpus(first, first + each);
}

}  // namespace

int tasks_per_node(const Resources& resources) {
  return resources.tasks_per_node.value_or(std::max(1, resources.gpus_per_node.value_or(1)));
}

Result<Placed> place(const JobSpec& spec, const Allocation& allocation) {
  const int tasks = tasks_per_node(spec.resources);
  const std::vector<AllocatedNode> nodes = TRY(choose_nodes(spec, allocation));
  const int each = TRY(gpus_per_task(spec, tasks));
  TRY(check_gpus(spec, nodes));
  TRY(check_cores(spec, nodes, tasks));
  Placed out;
  for (const AllocatedNode& node : nodes) {
    const NodeIndex index(static_cast<int>(out.nodes.size()));
    const CoreShare share = core_share(spec, node, tasks);
    out.nodes.push_back({.index = index, .host = node.host});
    out.ranks_per_node.push_back(tasks);
    for (int task = 0; task < tasks; ++task) {
      RankPlan rank;
      rank.rank = Rank(static_cast<int>(out.ranks.size()));
      rank.role = "worker";
      rank.task_index = rank.rank.get();
      rank.node = index;
      rank.local_rank = LocalRank(task);
      rank.gpus = gpus_of_task(spec, node, task, each);
      if (share.shares) rank.cpus = CpuShare{.share = task, .of = *share.shares};
      out.ranks.push_back(std::move(rank));
      out.cores.push_back(share.cores);
    }
  }
  return out;
}

}  // namespace dlrun::plan
