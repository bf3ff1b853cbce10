#include "src/agent/gpu_meter.hpp"

namespace dlrun::agent {

Json gpu_usage_of(const std::vector<GpuState>& first, const std::vector<GpuState>& now) {
  double use = 0, millijoules = 0;
  std::uint64_t used = 0, total = 0;
  std::size_t with_use = 0, with_memory = 0, with_energy = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const GpuState& gpu = now[i];
    if (gpu.use) use += *gpu.use, ++with_use;
    if (gpu.memory_total > 0) used += gpu.memory_used, total += gpu.memory_total, ++with_memory;
    if (gpu.millijoules && i < first.size() && first[i].millijoules &&
        *gpu.millijoules >= *first[i].millijoules)
      millijoules += static_cast<double>(*gpu.millijoules - *first[i].millijoules), ++with_energy;
  }
  const auto all = [&](std::size_t count) { return !now.empty() && count == now.size(); };
  Json out{{"gpu", with_use > 0 ? Json(use / static_cast<double>(with_use)) : Json(nullptr)},
           {"gpu_memory_used", all(with_memory) ? Json(used) : Json(nullptr)},
           {"gpu_memory_total", all(with_memory) ? Json(total) : Json(nullptr)},
           {"gpu_joules", all(with_energy) ? Json(millijoules / 1e3) : Json(nullptr)}};
  if (!all(with_energy)) out["gpu_why"] = "the driver counts no energy of these GPUs";
  return out;
}

void GpuMeter::begin(std::vector<std::string> names) {
  names_ = std::move(names);
  if (names_.empty()) return;
  usage_ = {{"gpu_why", "the driver has not answered yet"}};
  session_ = std::make_shared<NvmlSession>();
  ask();
}

void GpuMeter::ask() {
  if (!session_ || (asking_ && !asking_->answered())) return;
  asking_ = std::make_unique<Aside<Result<std::vector<GpuState>>>>(
      loop_, [session = session_, names = names_] { return session->states(names); },
      [this](const Result<std::vector<GpuState>>& states) { on_answer(states); });
}

void GpuMeter::on_answer(const Result<std::vector<GpuState>>& states) {
  if (!states) {
    usage_ = {{"gpu_why", states.error().what}};
    session_.reset();  // a driver that is not there does not come
    return;
  }
  if (!first_) first_ = *states;
  usage_ = gpu_usage_of(*first_, *states);
}

}  // namespace dlrun::agent
