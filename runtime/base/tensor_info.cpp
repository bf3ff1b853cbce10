// TensorInfo's arithmetic: how many numbers a shape holds.
#include "runtime/base/tensor_info.hpp"

#include <numeric>

namespace dlrun::runtime {

std::size_t TensorInfo::elements() const {
  return std::accumulate(
      shape.begin(), shape.end(), std::size_t{1},
      [](std::size_t product, std::int64_t extent) { return product * static_cast<std::size_t>(extent); });
}

}  // namespace dlrun::runtime
