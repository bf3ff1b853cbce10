// What the scheduler does not tell of a node (its cores, its GPUs) is asked of the node's agent, before the
// plan is final. Pure: what is to be asked, how answers go into the allocation, and the stand-ins with which
// the ranks can be placed before. What the scheduler told is never changed by an answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/json_fwd.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

// One node's answer.
struct NodeInventory {
  std::optional<int> cpus = {};                       // processors that the agent may use
  std::optional<std::vector<std::string>> gpus = {};  // unset: nothing there tells of any
  std::string gpu_source = {};                        // who told: "NVML: 4 GPUs"
  std::optional<GpuVendor> gpu_vendor = {};           // unset: nothing tells
  std::string cpu_model = {};                         // empty: nothing tells
};
using Inventories = std::map<std::string, NodeInventory>;  // by host

Json to_json(const NodeInventory& inventory);
Result<NodeInventory> inventory_from_json(const Json& json, std::string_view where);

struct NodeQuestions {
  bool cpus = false, gpus = false;
  bool cpu_models = false;  // threads are remembered by them
  bool any() const { return cpus || gpus || cpu_models; }
};
// What must be asked of the nodes of this plan. GPUs only where the job asks for some.
NodeQuestions questions_about(const Allocation& allocation, const Plan& plan, const JobSpec& spec);

// Answers into what is unset. Where the scheduler grants single cores of a node (a slot is a core), a node
// has as many as slots, unless the job itself says how many cores a task has.
void fill_in(Allocation& allocation, const Inventories& told, const JobSpec& spec);

// For the plan before the nodes have answered: as many GPUs as the job asks for on each node whose GPUs are
// unknown, with names that no device has. This machine alone (`local`) has been asked already, and gets none.
Allocation with_stand_ins(Allocation allocation, const JobSpec& spec);
Allocation without_stand_ins(Allocation allocation);
bool has_stand_ins(const Plan& plan);

// "the GPUs of n[1-2] are queried from the nodes at the start"; empty where all is known.
std::string asked_at_the_start(const Allocation& allocation, const NodeQuestions& questions);

}  // namespace dlrun::plan
