// See scoring.hpp.
#include "runtime/train/scoring.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::runtime {

std::vector<RankedClass> ranked(std::span<const float> scores, std::size_t count) {
  std::vector<RankedClass> out;
  if (scores.size() == 1) {  // one logit: of class 1
    const double one = 1 / (1 + std::exp(-static_cast<double>(scores[0])));
    out = {{0, 1 - one}, {1, one}};
  } else {
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      out.push_back({i, std::exp(static_cast<double>(scores[i]) - most)});
      sum += out.back().probability;
    }
    for (RankedClass& each : out) each.probability /= sum;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  out.resize(std::min(out.size(), count));
  return out;
}

void Confusion::add(std::size_t label, std::span<const RankedClass> ranking) {
  ++rows_;
  ++counts_[label * classes_ + ranking[0].label];
  if (ranking[0].label == label) ++best_;
  const auto five = ranking.first(std::min<std::size_t>(5, ranking.size()));
  if (std::any_of(five.begin(), five.end(), [&](const RankedClass& each) { return each.label == label; }))
    ++among_five_;
}

}  // namespace dlrun::runtime
