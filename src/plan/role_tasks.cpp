#include "src/plan/role_tasks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "src/base/strings.hpp"
#include "src/plan/asked_slots.hpp"

namespace dlrun::plan {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

// GPUs per task. A task that does not set it shares the job's GPUs per node, and needs at least one.
int gpus_wanted(const JobSpec& spec, const Role& role) {
  return role.gpus.value_or(spec.resources.gpus_per_node.value_or(0) > 0 ? 1 : 0);
}

Result<std::size_t> shared_node_count(const std::vector<Role>& roles, std::size_t nodes) {
  std::size_t dedicated = 0;
  std::vector<std::string> asked, sharing;
  std::string where;
  for (const Role& role : roles) {
    if (role.placement == Placement::shared) {
      sharing.push_back(role.name);
      continue;
    }
    const auto count = static_cast<std::size_t>(*role.count);
    dedicated += count;
    asked.push_back(fmt::format("{} {}", count, role.name));
    where = role.where;
  }
  const std::size_t needed = dedicated + (sharing.empty() ? 0 : 1);
  if (needed <= nodes) return nodes - dedicated;
  return fail(
      Error{.kind = ErrorKind::allocation,
            .what = fmt::format("dedicated roles need {} of their own ({}){}, and the job has {}",
                                count_text(dedicated, "node"), join(asked, ", "),
                                sharing.empty() ? "" : " and " + join(sharing, ", ") + " at least one more",
                                count_text(nodes, "node")),
            .where = where,
            .hint = fmt::format("get {} nodes, lower the counts, or use placement: shared", needed)});
}

tl::unexpected<Error> too_few_gpus(const Role& role, int each, int capacity, std::size_t nodes) {
  return fail(
      Error{.kind = ErrorKind::allocation,
            .what = fmt::format("role {} asks for {} with {} each, but the {} {} GPUs for {}", role.name,
                                count_text(static_cast<std::size_t>(*role.count), "task"),
                                count_text(static_cast<std::size_t>(each), "GPU"), count_text(nodes, "node"),
                                nodes == 1 ? "has" : "have", capacity),
            .where = role.where,
            .hint = fmt::format("use count: {}, or get more nodes: no GPU is given to two tasks", capacity)});
}

// Distributes tasks cyclically, one per node and round, within the capacity of each node.
std::vector<int> distribute(int count, const std::vector<int>& capacity) {
  std::vector<int> out(capacity.size(), 0);
  while (count > 0) {
    const int before = count;
    for (std::size_t i = 0; i < capacity.size() && count > 0; ++i) {
      if (out[i] >= capacity[i]) continue;
      ++out[i];
      --count;
    }
    if (count == before) break;  // the caller has checked the capacity
  }
  return out;
}

struct NodeLoad {
  int tasks = 0;
  int gpus = 0;     // the minimum that the tasks so far need
  int sharing = 0;  // tasks so far that share the node's GPUs or cores with a role that fills it
};

class TaskDistributor {
 public:
  TaskDistributor(const JobSpec& spec, const std::vector<AllocatedNode>& nodes, std::size_t shared)
      : spec_(spec),
        nodes_(nodes),
        slots_count_(slots_were_asked_for(nodes)),
        loads_(nodes.size()),
        shared_(shared),
        next_dedicated_(shared) {}

  Result<std::vector<int>> tasks_of(const Role& role) {
    std::vector<int> out = TRY(counted(role));
    const int each = gpus_wanted(spec_, role);
    for (std::size_t i = 0; i < out.size(); ++i) {
      loads_[i].tasks += out[i];
      loads_[i].gpus += out[i] * each;
      if (role.gpus != 0) loads_[i].sharing += out[i];
    }
    return out;
  }

 private:
  // How many more tasks with `each` GPUs the node can hold.
  int capacity(std::size_t node, int each) const {
    if (each == 0) return kNoLimit;
    return std::max(0, usable_gpus(spec_, nodes_[node]) - loads_[node].gpus) / each;
  }

  Result<std::vector<int>> counted(const Role& role) {
    std::vector<int> out(nodes_.size(), 0);
    if (role.placement == Placement::dedicated) {
      for (int i = 0; i < *role.count; ++i) out[next_dedicated_++] = 1;
      return out;
    }
    const int each = gpus_wanted(spec_, role);
    if (role.count) return distributed(role, each);
    for (std::size_t i = 0; i < shared_; ++i)
      out[i] = role.elsewhere && loads_[i].tasks > 0 ? 0
               : !role.per_node                      ? capacity(i, each)
               : role.fills                          ? std::max(0, per_node(role, i) - loads_[i].sharing)
                                                     : per_node(role, i);
    return out;
  }

  int per_node(const Role& role, std::size_t node) const {
    return role.by_slots && slots_count_ ? nodes_[node].asked_slots.value_or(1) : *role.per_node;
  }

  Result<std::vector<int>> distributed(const Role& role, int each) {
    std::vector<int> capacities;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < shared_; ++i) {
      capacities.push_back(capacity(i, each));
      total += capacities.back();
    }
    if (total < *role.count) return too_few_gpus(role, each, static_cast<int>(total), shared_);
    std::vector<int> out = distribute(*role.count, capacities);
    out.resize(nodes_.size(), 0);
    return out;
  }

  const JobSpec& spec_;
  const std::vector<AllocatedNode>& nodes_;
  bool slots_count_;
  std::vector<NodeLoad> loads_;
  std::size_t shared_;
  std::size_t next_dedicated_;
};

}  // namespace

std::string count_text(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

int usable_gpus(const JobSpec& spec, const AllocatedNode& node) {
  const int there = node.gpus ? static_cast<int>(node.gpus->size()) : 0;
  return spec.resources.gpus_per_node ? std::min(there, *spec.resources.gpus_per_node) : there;
}

Result<RoleTasks> distribute_tasks(const JobSpec& spec, const std::vector<Role>& roles,
                                   const std::vector<AllocatedNode>& nodes) {
  const std::size_t shared = TRY(shared_node_count(roles, nodes.size()));
  TaskDistributor distributor(spec, nodes, shared);
  RoleTasks out;
  std::int64_t total = 0;
  for (const Role& role : roles) {
    out.push_back(TRY(distributor.tasks_of(role)));
    const std::int64_t tasks = std::accumulate(out.back().begin(), out.back().end(), std::int64_t{0});
    total += tasks;
    if (tasks == 0 && !role.fills && !role.elsewhere)
      return fail(
          Error{.kind = ErrorKind::allocation,
                .what = fmt::format("role {} gets no task: no node has the {} it asks for", role.name,
                                    count_text(static_cast<std::size_t>(role.gpus.value_or(0)), "GPU")),
                .where = role.where,
                .hint = "ask for fewer GPUs per task, or get nodes with more"});
  }
  constexpr std::int64_t most = 10'000'000;
  if (total == 0 || total > most)
    return fail(ErrorKind::input, "the job has {} ranks, which is out of range [1, {}]", total, most);
  return out;
}

}  // namespace dlrun::plan
