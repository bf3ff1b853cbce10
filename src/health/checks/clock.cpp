// The clocks of the nodes against each other. The head asks each node for its time, and knows it up to the
// time that question and answer took. What is measured so is `skew`, the node's clock less the head's, and
// `uncertain`. Make, caches, Kerberos and time stamps of checkpoints need clocks that agree.
#include <algorithm>
#include <cmath>

#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kBad = 5, kWarning = 0.5;  // seconds
constexpr std::size_t kMajority = 3;        // nodes that know better than the head

double usual(const std::vector<Sample>& samples) {
  std::vector<double> skews;
  for (const Sample& sample : samples)
    if (const auto skew = number_of(sample.values, "skew")) skews.push_back(*skew);
  return skews.size() < kMajority ? 0 : median(skews);
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  const double middle = usual(samples);
  std::vector<Found> out;
  for (const Sample& sample : samples) {
    const auto skew = number_of(sample.values, "skew");
    if (!skew) continue;
    const double off = *skew - middle;
    const double at_least = std::abs(off) - number_of(sample.values, "uncertain").value_or(0);
    if (at_least > kWarning)
      out.push_back({sample.node, at_least > kBad ? State::bad : State::warning,
                     fmt::format("its clock is {} {}", format_duration(Seconds(std::abs(off))),
                                 off < 0 ? "behind" : "ahead")});
  }
  return out;
}

}  // namespace

Check clock_check() {
  return {.name = "clock", .judge = judge};
}

}  // namespace dlrun::health
