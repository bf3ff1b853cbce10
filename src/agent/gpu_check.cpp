#include "src/agent/gpu_check.hpp"

#include <algorithm>

#include "src/base/json.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kFirstCheck{3};
constexpr int kMaxChecks = 6;  // the last one 90 s after the start

}  // namespace

void GpuCheck::begin() {
  if (concerns_us()) check_after(kFirstCheck);
}

bool GpuCheck::concerns_us() const {
  const std::vector<RankProcesses> ranks = callbacks_.ranks();
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankProcesses& rank) { return rank.plan->gpus.has_value(); });
}

void GpuCheck::check_after(Seconds pause) {
  pause_ = pause;
  loop_.after(pause, [this] { check(); });
}

void GpuCheck::check() {
  if ((asking_ && !asking_->answered()) || !concerns_us()) return;
  ++checks_;
  asking_ = std::make_unique<Aside<Result<GpuUse>>>(
      loop_, [] { return ask_nvml_use(); }, [this](const Result<GpuUse>& use) { on_answer(use); });
}

void GpuCheck::on_answer(const Result<GpuUse>& use) {
  if (!use) return;  // no NVIDIA driver here, or one that does not tell
  const std::vector<RankProcesses> ranks = callbacks_.ranks();
  const std::vector<GpusOfRank> found = holders_of(ranks, *use);
  const Json json = to_json(found);
  if (to_text(json) != told_) {
    told_ = to_text(json);
    callbacks_.found(json);
    for (const std::string& warning : warnings_about(found)) callbacks_.warn(warning);
  }
  if (any_waited_for(found) && checks_ < kMaxChecks) check_after(2 * pause_);
}

}  // namespace dlrun::agent
