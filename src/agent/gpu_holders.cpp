#include "src/agent/gpu_holders.hpp"

#include <algorithm>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

using Names = std::vector<std::string>;

bool has(const auto& list, const auto& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The indices of the rank's own GPUs; unset where the driver knows one of them by another name.
std::optional<std::vector<int>> own_indices(const plan::RankPlan& rank, const GpuUse& use) {
  std::vector<int> out;
  for (const std::string& name : *rank.gpus) {
    const DriverGpu* gpu = find_gpu(use.gpus, name);
    if (gpu == nullptr) return std::nullopt;
    out.push_back(gpu->index);
  }
  return out;
}

GpusOfRank gpus_of(const RankProcesses& rank, const GpuUse& use) {
  GpusOfRank out{.plan = rank.plan};
  const auto own = own_indices(*rank.plan, use);
  for (const DriverGpu& gpu : use.gpus) {
    const bool held = std::any_of(use.holders.begin(), use.holders.end(), [&](const GpuHolder& holder) {
      return holder.gpu == gpu.index && has(rank.pids, holder.pid);
    });
    if (!held) continue;
    out.held.push_back(std::to_string(gpu.index));
    if (own && !has(*own, gpu.index)) out.not_its_own.push_back(out.held.back());
  }
  return out;
}

std::string gpus_text(const Names& names) {
  return (names.size() == 1 ? "GPU " : "GPUs ") + join(names, ", ");
}

std::string warning_about(const GpusOfRank& rank) {
  const std::string who = fmt::format("rank {} ({} {}) computes on {}", rank.plan->rank, rank.plan->role,
                                      rank.plan->task_index, gpus_text(rank.not_its_own));
  if (rank.plan->gpus->empty()) return who + ", and the job gives it no GPU";
  return fmt::format("{}, and the job gives it {}; does its program take the device of its local rank?", who,
                     gpus_text(*rank.plan->gpus));
}

}  // namespace

std::vector<GpusOfRank> holders_of(const std::vector<RankProcesses>& ranks, const GpuUse& use) {
  std::vector<GpusOfRank> out;
  for (const RankProcesses& rank : ranks)
    if (rank.plan->gpus) out.push_back(gpus_of(rank, use));
  return out;
}

bool any_waited_for(const std::vector<GpusOfRank>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const GpusOfRank& rank) { return !rank.plan->gpus->empty() && rank.held.empty(); });
}

std::vector<std::string> warnings_about(const std::vector<GpusOfRank>& ranks) {
  std::vector<std::string> out;
  for (const GpusOfRank& rank : ranks)
    if (!rank.not_its_own.empty()) out.push_back(warning_about(rank));
  return out;
}

Json to_json(const std::vector<GpusOfRank>& ranks) {
  Json out = Json::array();
  for (const GpusOfRank& rank : ranks)
    out.push_back({{"rank", rank.plan->rank.get()}, {"held", rank.held}, {"not_its_own", rank.not_its_own}});
  return out;
}

}  // namespace dlrun::agent
