#include "src/record/stragglers.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::job {
namespace {

// Of an even number the smaller of both: of two ranks, the faster one is the measure.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double spread_around(double median, std::vector<double> values) {
  for (double& value : values) value = std::abs(value - median);
  return lower_median(std::move(values));
}

std::optional<double> share(const Json& report, const char* name) {
  const auto value = field<double>(report, name, "report");
  return value && std::isfinite(*value) && *value >= 0 ? std::optional(*value) : std::nullopt;
}

bool is_among(const std::vector<Straggler>& all, int rank) {
  return std::any_of(all.begin(), all.end(), [rank](const Straggler& each) { return each.rank == rank; });
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

Json rounded(std::optional<double> seconds) {
  return seconds ? Json(std::round(*seconds * 1e6) / 1e6) : Json(nullptr);
}

}  // namespace

Json to_json(const Straggler& straggler) {
  return {{"rank", straggler.rank},
          {"seconds_per_step", rounded(straggler.seconds)},
          {"median_seconds_per_step", rounded(straggler.median)},
          {"compute", rounded(straggler.compute)},
          {"input", rounded(straggler.input)},
          {"wait", rounded(straggler.wait)}};
}

std::string text_of(const Straggler& straggler) {
  const bool tells = straggler.compute.has_value();
  std::string out = fmt::format("{} per step{}, the median rank {} ({:.2f} x)", time_text(straggler.seconds),
                                tells ? " without the wait for others" : "", time_text(straggler.median),
                                straggler.times_slower());
  if (tells)
    out += fmt::format("; computing {}, input {}, waiting {}", time_text(*straggler.compute),
                       time_text(straggler.input.value_or(0)), time_text(straggler.wait.value_or(0)));
  return out;
}

void Stragglers::reported(Rank rank, const Json& report, Ticks now) {
  if (rank.get() < 0 || !report.is_object() || !report.contains("step")) return;
  const auto step = field<std::int64_t>(report, "step", "report");
  if (!step || *step < 0) return;  // a report may say anything
  if (!began_) began_ = now;
  const auto index = static_cast<std::size_t>(rank.get());
  if (index >= ranks_.size()) ranks_.resize(index + 1);
  Window& window = ranks_[index];
  if (window.last_step >= 0 && *step > window.last_step) {
    const std::int64_t steps = *step - window.last_step;
    const auto compute = share(report, "compute"), input = share(report, "input"),
               wait = share(report, "wait");
    window.tells = compute.has_value();
    window.steps += steps;
    window.seconds += Seconds(now - window.last).count();
    window.compute += compute.value_or(0) * static_cast<double>(steps);
    window.input += input.value_or(0) * static_cast<double>(steps);
    window.wait += wait.value_or(0) * static_cast<double>(steps);
  }
  if (window.last_step >= 0) window.gap = now - window.last;
  window.last_step = *step, window.last = now;
}

// It has ended, or its node is gone while the others go on: nobody waits for what it tells.
bool Stragglers::is_silent(const Window& window, Ticks now) const {
  constexpr double windows = 5, gaps = 3;
  return window.last_step < 0 || now - window.last > windows * settings_.window + gaps * window.gap;
}

std::optional<double> Stragglers::own_time(const Window& window) const {
  if (window.steps == 0) return std::nullopt;
  return (all_tell_ ? window.compute + window.input : window.seconds) / static_cast<double>(window.steps);
}

bool Stragglers::judged(Ticks now) {
  if (!began_ || now - *began_ < settings_.window) return false;
  std::int64_t fewest = settings_.min_steps;
  std::size_t count = 0;
  all_tell_ = true;
  for (const Window& window : ranks_) {
    if (is_silent(window, now)) continue;
    fewest = std::min(fewest, window.steps), ++count;
    all_tell_ = all_tell_ && window.tells;
  }
  if (count < 2 || fewest < settings_.min_steps) return false;
  std::vector<double> times;
  for (const Window& window : ranks_)
    if (const auto own = own_time(window)) times.push_back(*own);
  const double median = lower_median(times);
  before_ = slow_;
  judge(median, std::max({(settings_.ratio - 1) * median, settings_.spreads * spread_around(median, times),
                          settings_.min_difference.count()}));
  began_ = now;
  return !came().empty() || !went().empty();
}

std::vector<Straggler> Stragglers::came() const {
  std::vector<Straggler> out;
  for (const Straggler& each : slow_)
    if (!is_among(before_, each.rank)) out.push_back(each);
  return out;
}

std::vector<int> Stragglers::went() const {
  std::vector<int> out;
  for (const Straggler& each : before_)
    if (!is_among(slow_, each.rank)) out.push_back(each.rank);
  return out;
}

void Stragglers::judge(double median, double margin) {
  slow_.clear();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Window& window = ranks_[i];
    const auto own = own_time(window);
    const auto steps = static_cast<double>(window.steps);
    window.slow_windows = own && *own > median + margin ? window.slow_windows + 1 : 0;
    if (window.slow_windows >= settings_.windows) {
      Straggler found{.rank = static_cast<int>(i), .seconds = *own, .median = median};
      if (window.tells)
        found.compute = window.compute / steps, found.input = window.input / steps,
        found.wait = window.wait / steps;
      remember(found);
      slow_.push_back(found);
    }
    window.steps = 0, window.seconds = window.compute = window.input = window.wait = 0;
  }
}

void Stragglers::remember(const Straggler& straggler) {
  const auto at = std::lower_bound(ever_.begin(), ever_.end(), straggler.rank,
                                   [](const Straggler& each, int rank) { return each.rank < rank; });
  if (at == ever_.end() || at->rank != straggler.rank)
    ever_.insert(at, straggler);
  else if (straggler.times_slower() > at->times_slower())
    *at = straggler;
}

}  // namespace dlrun::job
