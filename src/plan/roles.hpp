// Roles: what a framework's adapter says about the kinds of processes it has (worker, ps, chief, ...), and
// those of one job, with the job file's `roles:` laid over them. The order is the adapter's and is the order
// of the ranks. It knows no nodes: placement.hpp does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/fields.hpp"
#include "src/plan/adapter_words.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {

struct Adapter;

// How many tasks of a role there are where the job does not say.
enum class RoleDefault {
  absent,          // none: the role is there only where the job names it
  count,           // so many over the job
  tasks_per_node,  // what `tasks-per-node` is, on every node
  node,            // one on every node
  other_nodes,     // one on every node that has no task of the roles before it
};
inline constexpr auto kRoleDefaults =
    enum_names<RoleDefault>({{RoleDefault::absent, "absent"},
                             {RoleDefault::count, "count"},
                             {RoleDefault::tasks_per_node, "tasks-per-node"},
                             {RoleDefault::node, "node"},
                             {RoleDefault::other_nodes, "other-nodes"}});

// One entry of an adapter's `roles`.
struct RoleKind {
  std::string name;
  RoleDefault fallback = RoleDefault::absent;
  int count = 1;            // with RoleDefault::count
  std::optional<int> gpus;  // per task; unset: its share of the node's
  std::optional<int> port;  // the first of its ports on each node; unset: it opens none
  std::optional<int> most;  // tasks over the job
  Placement placement = Placement::shared;
  bool service = false;                    // it runs until the other roles have ended
  bool light = false;                      // it takes no share of the cores
  std::vector<AdapterWord> command;        // instead of the user's
  std::vector<AdapterVariable> variables;  // over the adapter's
};

Result<std::vector<RoleKind>> read_role_kinds(const yaml::Node& node, const std::string& path);

// One role of one job. With neither `count` nor `per_node` it has as many tasks on each node as the node's
// GPUs give.
struct Role {
  std::string name;
  std::optional<int> count, per_node, gpus, port;
  Placement placement = Placement::shared;
  bool port_is_stated = false;  // by the job: no other will do
  bool fills = false;           // per_node counts the tasks of other GPU roles on the node, too
  bool by_slots = false;        // per_node is a default: slots that were asked for count
  bool elsewhere = false;       // only on nodes that have no task of the roles before it
  bool service = false;         // it runs until the other roles have ended
  bool light = false;           // it takes no share of the cores
  std::string where;            // what errors call its place
};

// Whether the job has workers as with a framework without roles: it names no role, and those of its framework
// besides workers are there on request only.
bool has_workers_alone(const JobSpec& spec, const Adapter& adapter);

// The roles of the job, in order. A framework without roles has one, "worker".
Result<std::vector<Role>> roles_of_job(const JobSpec& spec, const Adapter& adapter);

}  // namespace dlrun::plan
