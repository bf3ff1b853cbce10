// See throughput.hpp.
#include "runtime/train/report/throughput.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::runtime {

void Throughput::start_window() {
  windows_.emplace_back();
  last_ = std::chrono::steady_clock::now();
}

void Throughput::step_done(double count) {
  const Ticks now = std::chrono::steady_clock::now();
  const double took = Seconds(now - last_).count();
  seconds_.push_back(took);
  windows_.back().count += count;
  windows_.back().seconds += took;
  last_ = now;
}

double Throughput::per_second() const {
  Window all;
  for (const Window& window : windows_) {
    all.count += window.count;
    all.seconds += window.seconds;
  }
  return all.seconds > 0 ? all.count / all.seconds : 0;
}

std::vector<double> Throughput::windows() const {
  std::vector<double> out;
  for (const Window& window : windows_)
    if (window.seconds > 0) out.push_back(window.count / window.seconds);
  return out;
}

double Throughput::uncertainty() const {
  const std::vector<double> rates = windows();
  if (rates.size() < 2) return 0;
  const auto count = static_cast<double>(rates.size());
  double mean = 0, squares = 0;
  for (const double rate : rates) mean += rate / count;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  return std::sqrt(squares / (count - 1) / count) / mean;
}

double Throughput::per_step() const {
  double count = 0;
  for (const Window& window : windows_) count += window.count;
  return seconds_.empty() ? 0 : count / static_cast<double>(seconds_.size());
}

Seconds Throughput::quantile(double share) const {
  if (seconds_.empty()) return Seconds(0);
  std::vector<double> sorted = seconds_;
  std::sort(sorted.begin(), sorted.end());
  return Seconds(
      sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))]);
}

Seconds Throughput::mean() const {
  double sum = 0;
  for (const double step : seconds_) sum += step;
  return Seconds(seconds_.empty() ? 0 : sum / static_cast<double>(seconds_.size()));
}

Seconds Throughput::std_dev() const {
  if (seconds_.size() < 2) return Seconds(0);
  const double average = mean().count();
  double squares = 0;
  for (const double step : seconds_) squares += (step - average) * (step - average);
  return Seconds(std::sqrt(squares / static_cast<double>(seconds_.size() - 1)));
}

}  // namespace dlrun::runtime
