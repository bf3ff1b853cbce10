// See schedule.hpp.
#include "runtime/train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dlrun::runtime {

LearningRate::LearningRate(const TrainSpec& spec, const RunShape& run) : schedule_(spec.schedule), run_(run) {
  const bool scaled = schedule_.scale != ScheduleSpec::Scale::none;
  batch_all_ = static_cast<double>(spec.batch) * run.batches();
  const double factor =
      schedule_.scale == ScheduleSpec::Scale::linear ? run.batches() : std::sqrt(run.batches());
  target_ = spec.optimizer.learning_rate * (scaled ? factor : 1);
  // The scaling rules warm up from the rate of one batch; without one the start is zero.
  start_ = scaled && run.batches() > 1 ? spec.optimizer.learning_rate : 0;
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

// Of what follows the warm-up; 0 where there is no end in sight.
double LearningRate::progress(double epochs_done) const {
  const double length = static_cast<double>(run_.epochs) - warmup_epochs();
  if (run_.epochs == 0 || length <= 0) return 0;
  return std::clamp((epochs_done - warmup_epochs()) / length, 0.0, 1.0);
}

// In steps, as PyTorch counts them: the first is 0, the highest rate is at rise * all - 1, the lowest at the
// last.
double LearningRate::one_cycle(double epochs_done) const {
  if (run_.epochs == 0) return 1;
  const double per_epoch = std::ceil(static_cast<double>(run_.samples) / batch_all_);
  const double whole = std::floor(epochs_done), all = static_cast<double>(run_.epochs) * per_epoch;
  const double step =
      whole * per_epoch + (epochs_done - whole) * static_cast<double>(run_.samples) / batch_all_;
  const auto cosine = [](double from, double to, double part) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * std::clamp(part, 0.0, 1.0)));
  };
  const double top = schedule_.rise * all - 1, start = 1 / schedule_.first_divisor;
  if (step <= top) return cosine(start, 1, top <= 0 ? 1 : step / top);
  return cosine(1, start / schedule_.last_divisor, (step - top) / (all - 1 - top));
}

double LearningRate::decay(double epochs_done) const {
  switch (schedule_.decay) {
    case ScheduleSpec::Decay::none:
      return 1;
    case ScheduleSpec::Decay::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress(epochs_done)));
    case ScheduleSpec::Decay::polynomial: {
      const double end = target_ > 0 ? schedule_.end_rate / target_ : 0;
      return end + (1 - end) * std::pow(1 - progress(epochs_done), schedule_.power);
    }
    case ScheduleSpec::Decay::one_cycle:
      return one_cycle(epochs_done);
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
