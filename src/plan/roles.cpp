#include "src/plan/roles.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/asked_slots.hpp"
#include "src/plan/enum_choice.hpp"
#include "src/plan/placement.hpp"

namespace dlrun::plan {
namespace {

constexpr int kMaxOfRole = 100'000;
constexpr const char* kWorker = "worker";

Result<std::optional<int>> integer(yaml::Fields& fields, std::string_view key, int low, int high) {
  if (!fields.has(key)) return std::optional<int>{};
  return std::optional<int>(static_cast<int>(TRY(fields.integer_or(key, 0, low, high))));
}

Result<RoleKind> read_role_kind(const std::string& name, const yaml::Node& node, const std::string& path) {
  if (as_job_name(name) != name)
    return yaml::error_at(node, fmt::format("'{}' is not a valid role name", name));
  yaml::Fields fields = TRY(yaml::Fields::of(node, path));
  RoleKind out;
  out.name = name;
  const std::optional<int> count = TRY(integer(fields, "count", 1, kMaxOfRole));
  out.fallback =
      TRY(enum_or(fields, "default", count ? RoleDefault::count : RoleDefault::absent, kRoleDefaults));
  out.count = count.value_or(1);
  out.gpus = TRY(integer(fields, "gpus", 0, 1024));
  out.port = TRY(integer(fields, "port", 1024, 65535));
  out.most = TRY(integer(fields, "most", 1, kMaxOfRole));
  out.placement = TRY(enum_or(fields, "placement", Placement::shared, kPlacements));
  out.service = TRY(fields.bool_or("service", false));
  out.light = TRY(fields.bool_or("light", false));
  out.command = TRY(read_words(fields.find("command"), path + ".command", Scope::rank));
  out.variables = TRY(read_variables(fields.find("env"), path + ".env"));
  TRY(fields.finish());
  if (count && out.fallback != RoleDefault::count)
    return yaml::error_at(*fields.find("count"), path + ": 'count' goes with 'default: count'");
  if (out.placement == Placement::dedicated && out.fallback >= RoleDefault::tasks_per_node)
    return yaml::error_at(node, path + ": a dedicated role needs a count, one node each");
  return out;
}

// What the job says of a role, else what the adapter says.
Result<Role> merged(const JobSpec& spec, const RoleKind& kind, const RoleSpec* asked) {
  Role out{.name = kind.name,
           .count = {},
           .per_node = {},
           .gpus = kind.gpus,
           .port = kind.port,
           .placement = kind.placement,
           .port_is_stated = false,
           .fills = false,
           .elsewhere = false,
           .service = kind.service,
           .light = kind.light,
           .where = asked == nullptr ? spec.tree.source : place_of(spec, "roles." + kind.name)};
  if (asked != nullptr) {
    if (asked->port && !kind.port)
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("role {} opens no ports, and the job sets port {} for it",
                                            out.name, *asked->port),
                        .where = place_of(spec, "roles." + kind.name + ".port"),
                        .hint = "leave it out"});
    if (asked->port) out.port = asked->port;
    out.port_is_stated = asked->port.has_value();
    if (asked->gpus) out.gpus = asked->gpus;
    if (asked->placement) out.placement = *asked->placement;
    out.count = asked->count;
    out.per_node = asked->per_node;
  }
  const bool stated = out.count || out.per_node;
  if (!stated && kind.fallback < RoleDefault::tasks_per_node) out.count = kind.count;
  if (!stated && kind.fallback > RoleDefault::tasks_per_node) out.per_node = 1;
  out.elsewhere = !stated && kind.fallback == RoleDefault::other_nodes;
  // A number of GPUs per task and none of tasks: each node gives what its own GPUs give.
  const bool by_gpus =
      out.gpus.value_or(0) > 0 && !spec.resources.gpus_per_node && !spec.resources.tasks_per_node;
  out.fills = !out.count && !out.per_node && !by_gpus;
  if (out.fills)
    out.per_node = out.gpus.value_or(0) > 0 && !spec.resources.tasks_per_node
                       ? *spec.resources.gpus_per_node / *out.gpus
                       : tasks_per_node(spec.resources);
  if (out.per_node == 0)
    return fail(Error{.kind = ErrorKind::allocation,
                      .what = fmt::format("role {} asks for {} GPUs per task, and the job for {} per node",
                                          out.name, *out.gpus, *spec.resources.gpus_per_node),
                      .where = out.where,
                      .hint = "ask for more GPUs per node, or fewer per task"});
  if (out.placement == Placement::dedicated && !out.count)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("role {} is dedicated but has no count", out.name),
                      .where = out.where,
                      .hint = "a dedicated role has one node per task: set 'count'"});
  if (kind.most && out.count.value_or(kMaxOfRole) > *kind.most)
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("role {} can have a maximum of {} task{} in a job", out.name,
                                          *kind.most, *kind.most == 1 ? "" : "s"),
                      .where = out.where,
                      .hint = fmt::format("use count: {}", *kind.most)});
  return out;
}

}  // namespace

bool has_workers_alone(const JobSpec& spec, const Adapter& adapter) {
  return spec.roles.empty() &&
         std::all_of(adapter.roles.begin(), adapter.roles.end(), [](const RoleKind& kind) {
           return kind.name == kWorker ? kind.fallback == RoleDefault::tasks_per_node && !kind.port
                                       : kind.fallback == RoleDefault::absent;
         });
}

Result<std::vector<RoleKind>> read_role_kinds(const yaml::Node& node, const std::string& path) {
  const yaml::Fields fields = TRY(yaml::Fields::of(node, path));
  std::vector<RoleKind> out;
  for (const auto& [name, value] : node.entries)
    out.push_back(TRY(read_role_kind(name, value, fields.path(name))));
  return out;
}

Result<std::vector<Role>> roles_of_job(const JobSpec& spec, const Adapter& adapter) {
  std::vector<std::string> known;
  for (const RoleKind& kind : adapter.roles) known.push_back(kind.name);
  for (const RoleSpec& asked : spec.roles) {
    if (std::find(known.begin(), known.end(), asked.name) != known.end()) continue;
    return fail(Error{.kind = ErrorKind::input,
                      .what = known.empty()
                                  ? fmt::format("framework {} has no roles, and the job names '{}'",
                                                adapter.name, asked.name)
                                  : fmt::format("framework {} has no role '{}'", adapter.name, asked.name),
                      .where = place_of(spec, "roles." + asked.name),
                      .hint = known.empty() ? "use resources.tasks-per-node for the number of ranks"
                                            : did_you_mean(asked.name, known)});
  }
  std::vector<Role> out;
  const bool workers_alone = has_workers_alone(spec, adapter);
  for (const RoleKind& kind : adapter.roles) {
    if (workers_alone) break;
    const auto asked = std::find_if(spec.roles.begin(), spec.roles.end(),
                                    [&](const RoleSpec& role) { return role.name == kind.name; });
    const bool named = asked != spec.roles.end();
    if (!named && kind.fallback == RoleDefault::absent) continue;
    out.push_back(TRY(merged(spec, kind, named ? &*asked : nullptr)));
  }
  if (out.empty() && !workers_alone)
    return fail(
        Error{.kind = ErrorKind::input,
              .what = fmt::format("framework {} runs only roles, and the job names none", adapter.name),
              .where = spec.tree.source,
              .hint = "valid names under 'roles': " + join(known, ", ")});
  if (out.empty())
    out.push_back({.name = kWorker,
                   .count = {},
                   .per_node = tasks_per_node(spec.resources),
                   .gpus = {},
                   .port = {},
                   .placement = Placement::shared,
                   .port_is_stated = false,
                   .fills = false,
                   .by_slots = leaves_tasks_to_slots(spec.resources),
                   .elsewhere = false,
                   .service = false,
                   .light = false,
                   .where = place_of(spec, "resources.tasks-per-node")});
  return out;
}

}  // namespace dlrun::plan
