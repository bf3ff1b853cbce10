#include "src/bench/results/student.hpp"

#include <cmath>

namespace dlrun::bench::results {
namespace {

// Never 0: it is a divisor.
double kept_apart(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxTerms = 500;
  double c = 1, d = 1 / kept_apart(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept_apart(1 + even * d);
    c = kept_apart(1 + even / c);
    value *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept_apart(1 + odd * d);
    c = kept_apart(1 + odd / c);
    value *= c * d;
    if (std::abs(c * d - 1) < 1e-12) break;
  }
  return value;
}

// I_x(a, b), regularized.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double factor =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? factor * beta_fraction(a, b, x) / a
                                   : 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double two_sided_p(double t, double degrees) {
  if (!std::isfinite(t)) return 0;
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

}  // namespace dlrun::bench::results
