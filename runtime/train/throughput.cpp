// See throughput.hpp.
#include "runtime/train/throughput.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlrun::runtime {

void Throughput::step_done(double images) {
  const Ticks now = std::chrono::steady_clock::now();
  seconds_.push_back(Seconds(now - last_).count());
  images_ += images;
  last_ = now;
}

double Throughput::quantile(double share) const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted = seconds_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

double Throughput::total_seconds() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
}

Json Throughput::figures() const {
  const double images_a_step = seconds_.empty() ? 0 : images_ / static_cast<double>(seconds_.size());
  return Json{{"images_per_s", images_ / total_seconds()},
              {"images_per_s_median_step", images_a_step / quantile(0.5)},
              {"steps", seconds_.size()},
              {"step_ms_median", 1e3 * quantile(0.5)},
              {"step_ms_p10", 1e3 * quantile(0.1)},
              {"step_ms_p90", 1e3 * quantile(0.9)}};
}

std::string Throughput::text() const {
  const Json now = figures();
  return fmt::format(
      "{:.0f} images/s over {} steps; by the median step {:.0f} images/s ({:.2f} ms; 10 % to 90 %: {:.2f} "
      "to {:.2f} ms)",
      now["images_per_s"].get<double>(), seconds_.size(), now["images_per_s_median_step"].get<double>(),
      1e3 * quantile(0.5), 1e3 * quantile(0.1), 1e3 * quantile(0.9));
}

}  // namespace dlrun::runtime
