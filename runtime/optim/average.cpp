// See average.hpp.
#include "runtime/optim/average.hpp"

#include "runtime/base/simd.hpp"

namespace dlrun::runtime {

DLRUN_VERSIONS void average_weights(float* __restrict average, const float* __restrict values,
                                    std::size_t count, float kept) {
  const float taken = 1 - kept;
  for (std::size_t i = 0; i < count; ++i) average[i] = kept * average[i] + taken * values[i];
}

DLRUN_VERSIONS void swap_weights(float* __restrict average, float* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = values[i];
    values[i] = average[i];
    average[i] = value;
  }
}

}  // namespace dlrun::runtime
