// See schedule.hpp.
#include "runtime/train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dlrun::runtime {

LearningRate::LearningRate(const TrainSpec& spec, const RunShape& run) : schedule_(spec.schedule), run_(run) {
  const bool scaled = schedule_.scale == ScheduleSpec::Scale::linear;
  batch_all_ = static_cast<double>(spec.batch) * run.world;
  target_ = spec.optimizer.learning_rate * (scaled ? run.world : 1);
  // The linear scaling rule warms up from the rate of one rank; without it the start is zero.
  start_ = scaled && run.world > 1 ? spec.optimizer.learning_rate : 0;
}

// How much of the warm-up lies behind when this step is done: 1 without one.
double LearningRate::warmup_progress(const Position& position) const {
  const double amount = schedule_.warmup.amount;
  if (amount <= 0) return 1;
  if (schedule_.warmup.unit == Interval::Unit::steps)
    return std::min(1.0, static_cast<double>(position.step + 1) / amount);
  const double samples = static_cast<double>(position.epoch * run_.samples + position.seen) + batch_all_;
  return std::min(1.0, samples / (amount * static_cast<double>(run_.samples)));
}

double LearningRate::warmup_epochs() const {
  if (schedule_.warmup.unit == Interval::Unit::epochs) return schedule_.warmup.amount;
  return schedule_.warmup.amount * batch_all_ / static_cast<double>(run_.samples);
}

double LearningRate::decay(double epochs_done) const {
  switch (schedule_.decay) {
    case ScheduleSpec::Decay::none:
      return 1;
    case ScheduleSpec::Decay::cosine: {
      if (run_.epochs == 0) return 1;
      const double length = static_cast<double>(run_.epochs) - warmup_epochs();
      const double progress =
          length <= 0 ? 0 : std::clamp((epochs_done - warmup_epochs()) / length, 0.0, 1.0);
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }
    case ScheduleSpec::Decay::step: {
      const auto passed = std::count_if(schedule_.at_epochs.begin(), schedule_.at_epochs.end(),
                                        [&](double epoch) { return epochs_done >= epoch; });
      return std::pow(schedule_.factor, static_cast<double>(passed));
    }
  }
  return 1;
}

float LearningRate::at(const Position& position) const {
  const double warm = start_ + (target_ - start_) * warmup_progress(position);
  const double done = static_cast<double>(position.epoch) +
                      static_cast<double>(position.seen) / static_cast<double>(run_.samples);
  return static_cast<float>(warm * decay(done));
}

}  // namespace dlrun::runtime
