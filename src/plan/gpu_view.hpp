// Which GPUs a rank sees. Its own ones are decided in placement and are what it is bound near; what it sees
// depends on how its framework picks: `own` shows it these alone, `node` shows every rank of the job on a
// node the GPUs of all of them, in an order in which the local rank is the index of the rank's first GPU. MIG
// instances are always shown as `own`: CUDA gives a process one of them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/gpus/gpu_vendor.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

enum class GpuView { own, node };
inline constexpr auto kGpuViews = enum_names<GpuView>({{GpuView::own, "own"}, {GpuView::node, "node"}});
std::string_view to_text(GpuView view);

// Fills in `visible_gpus` of all ranks, which need their nodes and `gpus`. With GpuView::node the first GPUs
// of the node's ranks come first, by local rank, and then what those with several have further.
void set_visible_gpus(std::vector<RankPlan>& ranks, GpuView view);

// The rank's own GPUs as it counts them: positions among those that it sees.
std::vector<std::size_t> visible_positions(const RankPlan& rank);

// The variables by which NVIDIA's, AMD's and Intel's libraries are told what is visible; empty where the job
// does not ask for GPUs. Where nobody told the vendor, indices are given to all three.
EnvironmentChanges device_variables(const RankPlan& rank, std::optional<GpuVendor> vendor);

// Those that device_variables() may set, which a job must not set as well.
inline constexpr std::array<std::string_view, 4> kDeviceVariables{
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};

}  // namespace dlrun::plan
