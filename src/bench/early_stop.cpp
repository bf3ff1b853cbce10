#include "src/bench/early_stop.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace dlrun::bench {

bool EarlyStop::is_better(double one, double other) const {
  return goal_.better == plan::BenchGoal::Better::higher ? one > other : one < other;
}

std::optional<std::string> EarlyStop::why_stopped(std::size_t point, const EpochValues& values) {
  for (int epoch = 1; epoch < epochs_; epoch *= 2) {
    const auto* const all = note(point, epoch, values);
    if (all == nullptr) continue;
    const double value = all->at(point);
    const auto better = static_cast<std::size_t>(std::count_if(
        all->begin(), all->end(), [&](const auto& other) { return is_better(other.second, value); }));
    if (better >= (all->size() + 1) / 2)
      return fmt::format("{} {:.4g} after {} of {} epochs is not in the better half of {}", goal_.metric,
                         value, epoch, epochs_, all->size());
  }
  return std::nullopt;
}

void EarlyStop::know(std::size_t point, const EpochValues& values) {
  for (int epoch = 1; epoch < epochs_; epoch *= 2) note(point, epoch, values);
}

// A value that was told late counts for the epoch that it is of. All at this rung, where the point has newly
// come to it: it is judged once.
const std::map<std::size_t, double>* EarlyStop::note(std::size_t point, int epoch,
                                                     const EpochValues& values) {
  const auto found = values.find(epoch);
  if (found == values.end()) return nullptr;
  auto& rung = rungs_[epoch];
  return rung.emplace(point, found->second).second ? &rung : nullptr;
}

}  // namespace dlrun::bench
