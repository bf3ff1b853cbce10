// The first values of parameters: a function of seed and name alone, the same on every device.
#pragma once

#include <cstdint>
#include <span>

namespace dlrun::runtime {

/// Uniform in [-bound, bound), plus a constant. A tensor's numbers from the n-th on have the key + n.
void uniform(std::span<float> out, std::uint64_t key, float bound, float constant);

}  // namespace dlrun::runtime
