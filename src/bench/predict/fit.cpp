#include "src/bench/predict/fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace dlrun::bench::predict {
namespace {

using Matrix = std::vector<std::vector<double>>;

bool has(unsigned set, std::size_t term) {
  return (set >> term & 1U) != 0;
}

std::vector<std::size_t> terms_in(unsigned set, std::size_t terms) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < terms; ++i)
    if (has(set, i)) out.push_back(i);
  return out;
}

// Least squares over the terms of the set; empty: the points do not tell these terms apart.
std::vector<double> coefficients_of(const std::vector<FitPoint>& points,
                                    const std::vector<std::size_t>& chosen) {
  Matrix a(chosen.size(), std::vector<double>(chosen.size(), 0));
  std::vector<double> b(chosen.size(), 0);
  for (const FitPoint& point : points) {
    const double weight = 1 / (point.noise * point.noise);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      b[i] += weight * point.amounts[chosen[i]] * point.seconds;
      for (std::size_t k = 0; k < chosen.size(); ++k)
        a[i][k] += weight * point.amounts[chosen[i]] * point.amounts[chosen[k]];
    }
  }
  return solve(std::move(a), std::move(b));
}

double value_of(const FitPoint& point, const std::vector<double>& coefficients) {
  double out = 0;
  for (std::size_t i = 0; i < coefficients.size(); ++i) out += coefficients[i] * point.amounts[i];
  return out;
}

double log_likelihood(const std::vector<FitPoint>& points, const std::vector<double>& coefficients) {
  double out = 0;
  for (const FitPoint& point : points) {
    const double off = (value_of(point, coefficients) - point.seconds) / point.noise;
    out -= off * off / 2;
  }
  return out;
}

void set_weights(std::vector<Model>& models) {
  double highest = models.front().weight, sum = 0;
  for (const Model& model : models) highest = std::max(highest, model.weight);
  for (Model& model : models) sum += model.weight = std::exp(model.weight - highest);
  for (Model& model : models) model.weight /= sum;
}

}  // namespace

std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  std::vector<double> scale;
  for (std::size_t i = 0; i < n; ++i) scale.push_back(a[i][i]);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a[i][i] > 1e-10 * scale[i])) return {};  // what is left of it is rounding
    for (std::size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t k = i; k < n; ++k) a[row][k] -= factor * a[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

std::vector<Model> fit_models(const std::vector<FitPoint>& points, std::size_t terms) {
  std::vector<Model> out;
  for (unsigned set = 0; set < 1U << terms; ++set) {
    const auto chosen = terms_in(set, terms);
    if (chosen.size() > points.size()) continue;
    const auto found = coefficients_of(points, chosen);
    if (found.size() != chosen.size() ||
        std::any_of(found.begin(), found.end(), [](double c) { return !(c >= 0); }))
      continue;
    Model model{.coefficients = std::vector<double>(terms, 0)};
    for (std::size_t i = 0; i < chosen.size(); ++i) model.coefficients[chosen[i]] = found[i];
    model.weight = log_likelihood(points, model.coefficients) - static_cast<double>(std::popcount(set));
    out.push_back(std::move(model));
  }
  set_weights(out);
  return out;
}

}  // namespace dlrun::bench::predict
