#include "src/plan/placement.hpp"

#include <algorithm>

#include "src/base/strings.hpp"
#include "src/plan/asked_slots.hpp"
#include "src/plan/node_range.hpp"
#include "src/plan/ports.hpp"
#include "src/plan/role_tasks.hpp"

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

Result<std::vector<AllocatedNode>> choose_nodes(const JobSpec& spec, const Allocation& allocation) {
  std::vector<AllocatedNode> nodes = allocation.nodes;
  if (nodes.empty())
    return fail(ErrorKind::allocation, "the allocation ({}) has no nodes", allocation.scheduler);
  const auto taken = nodes_taken(spec.resources, nodes.size());
  if (!taken) {
    const bool local = allocation.scheduler == "local";
    return fail(Error{
        .kind = ErrorKind::allocation,
        .what = fmt::format("the job asks for {} and {} {}: {}", nodes_text(spec.resources),
                            local ? "this machine is" : "the allocation has",
                            nodes.size() == 1 ? "one" : std::to_string(nodes.size()), hosts_text(nodes)),
        .where = place_of(spec, "resources.nodes"),
        .hint = local ? "run it inside a batch job of that size, or with --nodes 1"
                      : fmt::format("ask the scheduler for {}, or run with --nodes {}",
                                    nodes_text(spec.resources), nodes.size())});
  }
  nodes.resize(*taken);
  return nodes;
}

// By node.
struct NodeTasks {
  int with_cores = 0;  // that take a share of the cores
  int all = 0;
  int with_gpus = 0;   // tasks that can have GPUs
  int sharing = 0;     // of these, those that share what the others leave
  int asked_gpus = 0;  // what the others ask for
};

std::vector<NodeTasks> tasks_by_node(const std::vector<Role>& roles, const RoleTasks& tasks,
                                     std::size_t nodes) {
  std::vector<NodeTasks> out(nodes);
  for (std::size_t role = 0; role < roles.size(); ++role)
    for (std::size_t node = 0; node < nodes; ++node) {
      const int count = tasks[role][node];
      out[node].all += count;
      if (!roles[role].light) out[node].with_cores += count;
      if (roles[role].gpus != 0) out[node].with_gpus += count;
      if (!roles[role].gpus) out[node].sharing += count;
      out[node].asked_gpus += count * roles[role].gpus.value_or(0);
    }
  return out;
}

// Every node that runs tasks with GPUs must have them; all that have not are named at once.
Result<void> check_gpus(const JobSpec& spec, const std::vector<AllocatedNode>& nodes,
                        const std::vector<NodeTasks>& tasks) {
  Error error{.kind = ErrorKind::allocation,
              .what = {},
              .where = place_of(spec, "resources.gpus-per-node"),
              .hint = "request fewer GPUs with --gpus-per-node, or get other nodes"};
  std::size_t asked = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const AllocatedNode& node = nodes[i];
    if (tasks[i].with_gpus == 0) continue;
    const auto needed =
        static_cast<std::size_t>(std::max(spec.resources.gpus_per_node.value_or(0), tasks[i].asked_gpus));
    asked = std::max(asked, needed);
    if (needed == 0 || (node.gpus && node.gpus->size() >= needed)) continue;
    if (!node.gpus)
      error.hint = fmt::format("list the GPUs of the nodes, as in --hosts '{} gpus={}', or request fewer",
                               node.host, asked);
    error.also.push_back(!node.gpus
                             ? fmt::format("{}: its GPUs are unknown", node.host)
                             : fmt::format("{} has {}{}", node.host, count_text(node.gpus->size(), "GPU"),
                                           node.gpus->empty() ? "" : ": " + join(*node.gpus, ", ")));
  }
  if (error.also.empty()) return {};
  error.what = fmt::format("the job asks for {} per node, but {} of {} not have them",
                           count_text(asked, "GPU"), error.also.size(),
                           count_text(nodes.size(), "node") + (error.also.size() == 1 ? " does" : " do"));
  return fail(std::move(error));
}

// GPUs must be divided among the tasks without remainder: a task with less would train another model's speed.
Result<int> gpus_shared_each(const JobSpec& spec, const NodeTasks& tasks) {
  if (!spec.resources.gpus_per_node || tasks.sharing == 0) return 0;
  const int gpus = *spec.resources.gpus_per_node - tasks.asked_gpus;
  if (gpus >= 0 && gpus % tasks.sharing == 0 && (gpus > 0 || *spec.resources.gpus_per_node == 0))
    return gpus / tasks.sharing;
  std::string place = place_of(spec, "resources.tasks-per-node");
  if (place.empty()) place = place_of(spec, "resources.gpus-per-node");
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("{} per node cannot be divided equally among {}",
                                        count_text(static_cast<std::size_t>(std::max(gpus, 0)), "GPU"),
                                        count_text(static_cast<std::size_t>(tasks.sharing), "task")),
                    .where = std::move(place),
                    .hint = gpus < tasks.sharing
                                ? fmt::format("use --tasks-per-node {}, one task per GPU", std::max(gpus, 1))
                                : "choose a number of tasks that divides the number of GPUs"});
}

Result<void> check_cores(const JobSpec& spec, const std::vector<AllocatedNode>& nodes,
                         const std::vector<NodeTasks>& tasks) {
  if (!spec.resources.cpus_per_task) return {};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int64_t asked = static_cast<std::int64_t>(*spec.resources.cpus_per_task) * tasks[i].with_cores;
    if (nodes[i].cpus && *nodes[i].cpus < asked)
      return fail(Error{
          .kind = ErrorKind::allocation,
          .what = fmt::format("{} of {} cores need {} cores, and {} has {}",
                              count_text(static_cast<std::size_t>(tasks[i].with_cores), "task"),
                              *spec.resources.cpus_per_task, asked, nodes[i].host, *nodes[i].cpus),
          .where = place_of(spec, "resources.cpus-per-task"),
          .hint = "request fewer cores per task, or remove cpus-per-task to divide the cores of the node"});
  }
  return {};
}

struct CoreShare {
  std::optional<int> cores;
  std::optional<int> shares;  // the number of equal runs of the node's cores; unset: no binding
};

// More tasks than cores share them all and are not bound: two ranks on one core would wait for each other.
CoreShare core_share(const JobSpec& spec, const AllocatedNode& node, int tasks) {
  CoreShare out;
  out.cores = spec.resources.cpus_per_task;
  if (!node.cpus || tasks == 0) return out;
  if (!out.cores) out.cores = std::max(1, *node.cpus / tasks);
  if (spec.launch.bind && tasks <= *node.cpus)
    out.shares = spec.resources.cpus_per_task ? *node.cpus / *out.cores : tasks;
  return out;
}

// A node that no role needs takes no part: an agent there would have nothing to start.
void drop_idle_nodes(RoleTasks& tasks, std::vector<AllocatedNode>& nodes) {
  std::size_t kept = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (std::all_of(tasks.begin(), tasks.end(), [&](const auto& role) { return role[node] == 0; })) continue;
    for (auto& role : tasks) role[kept] = role[node];
    if (kept != node) nodes[kept] = std::move(nodes[node]);
    ++kept;
  }
  for (auto& role : tasks) role.resize(kept);
  nodes.resize(kept);
}

// What is given out so far on one node.
struct NodeCursor {
  CoreShare share;
  int shared_each = 0;
  int ranks = 0, shares = 0;
  std::size_t gpus = 0;
};

std::optional<Gpus> take_gpus(const JobSpec& spec, const Role& role, const AllocatedNode& node,
                              NodeCursor& cursor) {
  if (!role.gpus && !spec.resources.gpus_per_node) return std::nullopt;
  const auto each = static_cast<std::size_t>(role.gpus.value_or(cursor.shared_each));
  if (each == 0) return Gpus{};
  const auto first = node.gpus->begin() + static_cast<std::ptrdiff_t>(cursor.gpus);
  cursor.gpus += each;
  return Gpus(first, first + static_cast<std::ptrdiff_t>(each));
}

void add_ranks(Placed& out, const JobSpec& spec, const Role& role, const std::vector<int>& tasks,
               const std::vector<AllocatedNode>& nodes, std::vector<NodeCursor>& cursors) {
  int task_index = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (int task = 0; task < tasks[node]; ++task) {
      NodeCursor& cursor = cursors[node];
      RankPlan rank;
      rank.rank = Rank(static_cast<int>(out.ranks.size()));
      rank.role = role.name;
      rank.service = role.service;
      rank.task_index = task_index++;
      rank.node = NodeIndex(static_cast<int>(node));
      rank.local_rank = LocalRank(cursor.ranks);
      rank.gpus = take_gpus(spec, role, nodes[node], cursor);
      if (cursor.share.shares && !role.light)
        rank.cpus = CpuShare{.share = cursor.shares++, .of = *cursor.share.shares};
      ++cursor.ranks;
      out.ranks.push_back(std::move(rank));
      out.cores.push_back(role.light ? std::nullopt : cursor.share.cores);
    }
}

// The framework starts a node's tasks itself: one rank has all their GPUs, and cores enough for them.
Placed one_rank_per_node(Placed placed) {
  Placed out{.nodes = std::move(placed.nodes),
             .ranks = {},
             .ranks_per_node = std::vector<int>(placed.ranks_per_node.size(), 1),
             .tasks_per_node = std::move(placed.tasks_per_node),
             .cores = {}};
  for (std::size_t i = 0; i < placed.ranks.size(); ++i) {
    RankPlan& task = placed.ranks[i];
    if (!out.ranks.empty() && out.ranks.back().node == task.node) {
      if (task.gpus)
        out.ranks.back().gpus->insert(out.ranks.back().gpus->end(), task.gpus->begin(), task.gpus->end());
      continue;
    }
    task.rank = Rank(static_cast<int>(out.ranks.size()));
    task.task_index = task.rank.get();
    if (task.cpus) task.cpus = CpuShare{};
    out.ranks.push_back(std::move(task));
    out.cores.push_back(placed.cores[i]);
  }
  return out;
}

// The framework's own launcher, on the first node. It is neither bound nor are GPUs hidden from it: what it
// starts there would inherit that.
Placed one_rank(Placed placed) {
  placed.ranks.resize(1);
  placed.ranks.front().gpus.reset();
  placed.ranks.front().cpus.reset();
  placed.cores = {std::nullopt};
  placed.ranks_per_node.assign(placed.ranks_per_node.size(), 0);
  placed.ranks_per_node.front() = 1;
  return placed;
}

}  // namespace

int tasks_per_node(const Resources& resources) {
  return resources.tasks_per_node.value_or(std::max(1, resources.gpus_per_node.value_or(1)));
}

Result<Placed> place(const JobSpec& spec, const std::vector<Role>& roles, const Allocation& allocation,
                     ProcessModel process, const TakenPorts& taken) {
  std::vector<AllocatedNode> nodes = TRY(choose_nodes(spec, allocation));
  TRY(check_asked_slots(spec, nodes, scheduler_of(allocation).slot_division));
  RoleTasks tasks = TRY(distribute_tasks(spec, roles, nodes));
  drop_idle_nodes(tasks, nodes);
  const std::vector<NodeTasks> by_node = tasks_by_node(roles, tasks, nodes.size());
  std::vector<NodeCursor> cursors;
  Placed out;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cursors.push_back({.share = core_share(spec, nodes[i], by_node[i].with_cores),
                       .shared_each = TRY(gpus_shared_each(spec, by_node[i]))});
    out.nodes.push_back(
        {.index = NodeIndex(static_cast<int>(i)), .host = nodes[i].host, .address = nodes[i].address});
    out.ranks_per_node.push_back(by_node[i].all);
  }
  TRY(check_gpus(spec, nodes, by_node));
  TRY(check_cores(spec, nodes, by_node));
  for (std::size_t role = 0; role < roles.size(); ++role)
    add_ranks(out, spec, roles[role], tasks[role], nodes, cursors);
  TRY(assign_ports(out.ranks, roles, nodes, taken));
  out.tasks_per_node = out.ranks_per_node;
  if (process == ProcessModel::per_node) out = one_rank_per_node(std::move(out));
  if (process == ProcessModel::per_job) out = one_rank(std::move(out));
  return out;
}

}  // namespace dlrun::plan
