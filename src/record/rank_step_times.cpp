#include "src/record/rank_step_times.hpp"

#include <cmath>

#include "src/base/json.hpp"

namespace dlrun::job {
namespace {

constexpr int kEventsPerLength = 128;  // then a window is twice as long

}  // namespace

void RankStepTimes::reported(Rank rank, const Json& report, Ticks now) {
  if (rank.get() < 0 || !report.is_object() || !report.contains("step")) return;
  const auto step = field<std::int64_t>(report, "step", "report");
  if (!step || *step < 0) return;  // a report may say anything
  const auto index = static_cast<std::size_t>(rank.get());
  if (index >= ranks_.size()) ranks_.resize(index + 1);
  Steps& steps = ranks_[index];
  if (steps.first.step < 0 || *step < steps.last.step) steps.first = {now, *step};
  steps.last = {now, *step};
  if (!began_) began_ = now;
}

std::optional<Json> RankStepTimes::due(Ticks now) {
  if (!began_ || now - *began_ < window_) return std::nullopt;
  began_ = now;
  bool any = false;
  Json seconds = Json::array();
  for (Steps& steps : ranks_) {
    const auto done = steps.last.step - steps.first.step;
    const Seconds took = steps.last.when - steps.first.when;
    const bool known = steps.first.step >= 0 && done > 0;
    seconds.push_back(known ? Json(std::round(took.count() / static_cast<double>(done) * 1e6) / 1e6)
                            : Json(nullptr));
    steps.first = steps.last;
    any = any || known;
  }
  if (!any) return std::nullopt;
  if (++events_ % kEventsPerLength == 0) window_ *= 2;
  return Json{{"event", "step_times"}, {"seconds", std::move(seconds)}};
}

}  // namespace dlrun::job
