#include "src/plan/node_inventory.hpp"

#include <algorithm>
#include <set>

#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/scheduler.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

constexpr char kStandIn = '?';

bool asks_for_gpus(const JobSpec& spec) {
  return spec.resources.gpus_per_node.value_or(0) > 0 ||
         std::any_of(spec.roles.begin(), spec.roles.end(),
                     [](const RoleSpec& role) { return role.gpus.value_or(0) > 0; });
}

std::string hosts_without(const Allocation& allocation, bool (*known)(const AllocatedNode&)) {
  std::vector<HostName> hosts;
  for (const AllocatedNode& node : allocation.nodes)
    if (!known(node)) hosts.push_back(node.host);
  return hosts.empty() ? std::string() : compress_hostlist(hosts);
}

bool are_stand_ins(const std::optional<std::vector<std::string>>& gpus) {
  return gpus && !gpus->empty() && gpus->front().starts_with(kStandIn);
}

bool has_cpus(const AllocatedNode& node) {
  return node.cpus.has_value();
}
bool has_gpus(const AllocatedNode& node) {
  return node.gpus.has_value();
}

int cores_of(const NodeInventory& told, const AllocatedNode& node, const Allocation& allocation,
             const JobSpec& spec) {
  const bool granted = scheduler_of(allocation).slot_unit == SlotUnit::cores && !spec.resources.cpus_per_task;
  return granted ? std::min(*told.cpus, std::max(1, node.slots)) : *told.cpus;
}

}  // namespace

Json to_json(const NodeInventory& inventory) {
  Json out{{"cpus", inventory.cpus ? Json(*inventory.cpus) : Json(nullptr)},
           {"gpus", inventory.gpus ? Json(*inventory.gpus) : Json(nullptr)},
           {"gpu_source", inventory.gpu_source}};
  if (!inventory.cpu_model.empty()) out["cpu_model"] = inventory.cpu_model;
  if (inventory.gpu_vendor) out["gpu_vendor"] = kGpuVendors.name(*inventory.gpu_vendor);
  return out;
}

Result<NodeInventory> inventory_from_json(const Json& json, std::string_view where) {
  NodeInventory out;
  if (const Json cpus = TRY(field<Json>(json, "cpus", where)); !cpus.is_null()) {
    if (!cpus.is_number_integer() || cpus < 1 || cpus > 10'000'000)
      return fail(ErrorKind::internal, "{}: '{}' is not a number of cores", where, dlrun::to_text(cpus));
    out.cpus = cpus.get<int>();
  }
  if (const Json gpus = TRY(field<Json>(json, "gpus", where)); !gpus.is_null())
    out.gpus = TRY(field<std::vector<std::string>>(json, "gpus", where));
  out.gpu_source = TRY(field<std::string>(json, "gpu_source", where));
  if (json.contains("cpu_model")) out.cpu_model = TRY(field<std::string>(json, "cpu_model", where));
  if (json.contains("gpu_vendor")) {
    const auto vendor = TRY(field<std::string>(json, "gpu_vendor", where));
    out.gpu_vendor = kGpuVendors.value(vendor);
    if (!out.gpu_vendor) return fail(ErrorKind::internal, "{}: unknown vendor of GPUs '{}'", where, vendor);
  }
  return out;
}

NodeQuestions questions_about(const Allocation& allocation, const Plan& plan, const JobSpec& spec) {
  std::set<std::string> used;
  for (const NodePlan& node : plan.nodes) used.insert(node.host.get());
  const bool gpus = asks_for_gpus(spec);
  NodeQuestions out;
  for (const AllocatedNode& node : allocation.nodes) {
    if (!used.contains(node.host.get())) continue;
    out.cpus = out.cpus || !node.cpus;
    out.gpus = out.gpus || (gpus && !node.gpus);
  }
  return out;
}

void fill_in(Allocation& allocation, const Inventories& told, const JobSpec& spec) {
  std::vector<HostName> cpus, gpus;
  for (AllocatedNode& node : allocation.nodes) {
    const auto found = told.find(node.host.get());
    if (found == told.end()) continue;
    if (!node.cpus && found->second.cpus) {
      node.cpus = cores_of(found->second, node, allocation, spec);
      cpus.push_back(node.host);
    }
    if (!node.gpus && found->second.gpus) {
      node.gpus = found->second.gpus;
      node.gpu_vendor = found->second.gpu_vendor;
      gpus.push_back(node.host);
    }
  }
  if (!cpus.empty())
    allocation.evidence.push_back("queried from the nodes: cores of " + compress_hostlist(cpus));
  if (gpus.empty()) return;
  allocation.evidence.push_back(fmt::format("queried from the nodes: GPUs of {} ({}: {})",
                                            compress_hostlist(gpus), gpus.front(),
                                            told.at(gpus.front().get()).gpu_source));
}

Allocation with_stand_ins(Allocation allocation, const JobSpec& spec) {
  const int asked = spec.resources.gpus_per_node.value_or(0);
  if (allocation.scheduler == "local" || asked == 0) return allocation;
  for (AllocatedNode& node : allocation.nodes) {
    if (node.gpus) continue;
    node.gpus.emplace();
    for (int i = 0; i < asked; ++i) node.gpus->push_back(kStandIn + std::to_string(i));
  }
  return allocation;
}

Allocation without_stand_ins(Allocation allocation) {
  for (AllocatedNode& node : allocation.nodes)
    if (are_stand_ins(node.gpus)) node.gpus.reset();
  return allocation;
}

bool has_stand_ins(const Plan& plan) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const RankPlan& rank) { return are_stand_ins(rank.gpus); });
}

std::string asked_at_the_start(const Allocation& allocation, const NodeQuestions& questions) {
  std::vector<std::string> parts;
  if (questions.cpus) parts.push_back("the cores of " + hosts_without(allocation, has_cpus));
  if (questions.gpus) parts.push_back("the GPUs of " + hosts_without(allocation, has_gpus));
  return parts.empty() ? std::string() : join(parts, " and ") + " are queried from the nodes at the start";
}

}  // namespace dlrun::plan
