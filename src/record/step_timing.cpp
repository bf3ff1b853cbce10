#include "src/record/step_timing.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/json.hpp"

namespace dlrun::job {
namespace {

Json rounded(std::optional<Seconds> time) {
  return time ? Json(std::round(time->count() * 1e6) / 1e6) : Json(nullptr);
}

Result<std::optional<Seconds>> seconds_or_null(const Json& json, const char* name, const std::string& where) {
  if (TRY(field<Json>(json, name, where)).is_null()) return std::nullopt;
  const double seconds = TRY(field<double>(json, name, where));
  if (seconds >= 0) return Seconds(seconds);
  return fail(ErrorKind::input, "{}: {} is {}, and times cannot be negative", where, name, seconds);
}

}  // namespace

Json to_json(const std::optional<StepTiming>& timing) {
  if (!timing) return nullptr;
  return {{"start", rounded(timing->start)},
          {"steps", timing->steps},
          {"seconds_per_step", rounded(timing->step)},
          {"checkpoint", rounded(timing->save)},
          {"held", rounded(timing->held)}};
}

Result<StepTiming> step_timing_from_json(const Json& json, const std::string& where) {
  StepTiming out;
  out.start = TRY(seconds_or_null(json, "start", where)).value_or(Seconds(0));
  out.steps = TRY(field<std::int64_t>(json, "steps", where));
  out.step = TRY(seconds_or_null(json, "seconds_per_step", where)).value_or(Seconds(0));
  out.save = TRY(seconds_or_null(json, "checkpoint", where));
  out.held = TRY(seconds_or_null(json, "held", where));
  if (out.steps < 1 || out.step.count() <= 0)
    return fail(ErrorKind::input, "{}: invalid step timing: {} steps, {} s", where, out.steps,
                out.step.count());
  return out;
}

void StepTimer::stepped(Ticks now, std::int64_t step) {
  if (last_ && step <= last_->step) return;  // a report may say anything
  last_ = Mark{now, step, checkpoints_.total()};
  if (!first_) first_ = last_;
}

void StepTimer::saved(const std::string& state, Seconds took, Seconds held) {
  took = std::max(took, Seconds(0));
  held = std::clamp(held, Seconds(0), took);
  longest_save_ = std::max(longest_save_.value_or(took), took);
  longest_held_ = std::max(longest_held_.value_or(held), held);
  checkpoints_.saved(state, held);
}

std::optional<StepTiming> StepTimer::measured() const {
  if (!first_ || last_->step == first_->step) return std::nullopt;
  const Seconds whole = last_->when - first_->when;
  const Seconds stood = std::min(last_->held - first_->held, whole);
  StepTiming out;
  out.start = first_->when - began_;
  out.steps = last_->step - first_->step;
  out.step = (whole - stood) / static_cast<double>(out.steps);
  out.save = longest_save_;
  out.held = longest_held_;
  if (out.step.count() <= 0) return std::nullopt;
  return out;
}

}  // namespace dlrun::job
