#include "src/plan/gpu_view.hpp"

#include <algorithm>
#include <map>

#include "schedulers/gpus/cuda_visible.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

using GpuNames = std::vector<std::string>;

// Level Zero takes an empty mask for none at all and shows everything. An index that no node has hides all.
constexpr std::string_view kNoLevelZeroDevice = "1023";

// A process sees one instance of divided GPUs, the first that is named to it.
bool has_instances(const std::vector<RankPlan>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankPlan& rank) {
    return rank.gpus && std::any_of(rank.gpus->begin(), rank.gpus->end(), is_mig_id);
  });
}

// By which all vendors' libraries know their GPUs.
bool are_indices(const GpuNames& gpus) {
  return std::all_of(gpus.begin(), gpus.end(), [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  });
}

EnvironmentChanges hidden_from_all() {
  return {{"CUDA_VISIBLE_DEVICES", ""},
          {"ROCR_VISIBLE_DEVICES", ""},
          {"HIP_VISIBLE_DEVICES", ""},
          {"ZE_AFFINITY_MASK", std::string(kNoLevelZeroDevice)}};
}

// "0", "1", ...: HIP counts in what ROCR_VISIBLE_DEVICES leaves.
GpuNames counted(std::size_t size) {
  GpuNames out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::to_string(i));
  return out;
}

std::map<NodeIndex, GpuNames> gpus_by_node(const std::vector<RankPlan>& ranks) {
  std::map<NodeIndex, std::map<LocalRank, const GpuNames*>> owners;
  for (const RankPlan& rank : ranks)
    if (rank.gpus && !rank.gpus->empty()) owners[rank.node][rank.local_rank] = &*rank.gpus;
  std::map<NodeIndex, GpuNames> out;
  for (const auto& [node, by_local_rank] : owners) {
    for (const auto& [local, gpus] : by_local_rank) out[node].push_back(gpus->front());
    for (const auto& [local, gpus] : by_local_rank)
      out[node].insert(out[node].end(), gpus->begin() + 1, gpus->end());
  }
  return out;
}

}  // namespace

std::string_view to_text(GpuView view) {
  return kGpuViews.name(view);
}

void set_visible_gpus(std::vector<RankPlan>& ranks, GpuView view) {
  for (RankPlan& rank : ranks) rank.visible_gpus = rank.gpus;
  if (view == GpuView::own || has_instances(ranks)) return;
  const std::map<NodeIndex, GpuNames> of_node = gpus_by_node(ranks);
  for (RankPlan& rank : ranks)
    if (rank.gpus && !rank.gpus->empty()) rank.visible_gpus = of_node.at(rank.node);
}

std::vector<std::size_t> visible_positions(const RankPlan& rank) {
  std::vector<std::size_t> out;
  if (!rank.gpus || !rank.visible_gpus) return out;
  for (const std::string& name : *rank.gpus) {
    const auto found = std::find(rank.visible_gpus->begin(), rank.visible_gpus->end(), name);
    out.push_back(static_cast<std::size_t>(found - rank.visible_gpus->begin()));
  }
  return out;
}

EnvironmentChanges device_variables(const RankPlan& rank, std::optional<GpuVendor> vendor) {
  if (!rank.visible_gpus) return {};
  const GpuNames& visible = *rank.visible_gpus;
  if (visible.empty()) return hidden_from_all();
  const std::string names = join(visible, ","), positions = join(counted(visible.size()), ",");
  switch (vendor.value_or(GpuVendor::nvidia)) {
    case GpuVendor::amd:  // HIP takes CUDA's variable as its own, and frameworks refuse two that differ
      return {{"ROCR_VISIBLE_DEVICES", names},
              {"HIP_VISIBLE_DEVICES", positions},
              {"CUDA_VISIBLE_DEVICES", positions}};
    case GpuVendor::intel:
      return {{"ZE_AFFINITY_MASK", names}};
    case GpuVendor::nvidia:
      break;
  }
  EnvironmentChanges out{{"CUDA_VISIBLE_DEVICES", names}};
  if (vendor || !are_indices(visible)) return out;
  out["ROCR_VISIBLE_DEVICES"] = names;
  out["HIP_VISIBLE_DEVICES"] = positions;
  out["ZE_AFFINITY_MASK"] = names;
  return out;
}

}  // namespace dlrun::plan
