// Student's t distribution, as far as a comparison of means needs it.
#pragma once

namespace dlrun::bench::results {

/// The probability of a value as far from 0 as `t`, in either direction. `degrees` need not be whole.
double two_sided_p(double t, double degrees);

}  // namespace dlrun::bench::results
