// The reference's operators on volumes, in plain loops: windows are cubes.
#pragma once

#include "reference.hpp"

namespace dlrun::runtime::test {

/// `bias`: null where there is none.
Numbers reference_volume_convolution(const Numbers& in, const Numbers& weights, const Numbers* bias,
                                     const Shape& from, const Shape& to, const op::Convolution& spec);

/// What a pooling makes of the voxels of a window, those outside left out; `zeros` is how many these were.
using PoolVoxels = double (*)(const Numbers& voxels, std::size_t zeros);
struct CubeWindow {
  std::int64_t size, stride, padding;
};
Numbers reference_volume_pool(const Numbers& in, const Shape& from, const Shape& to, const CubeWindow& window,
                              PoolVoxels pool);

}  // namespace dlrun::runtime::test
