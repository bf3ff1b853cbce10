// The first pass of an optimizer that looks at whole tensors, piece by piece and in parallel: the sums do not
// depend on the number of threads, nor on who has the tensor.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

/// The sums of pass.measure over `count` numbers; `range_of(begin, end)`: some of them.
template <class RangeOf>
TensorSums measured(const TensorPass& pass, const Factors& factors, std::size_t count,
                    const RangeOf& range_of) {
  std::vector<TensorSums> parts((count + kernels::kGrain - 1) / kernels::kGrain);
  parallel_for(count, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += kernels::kGrain)
      parts[at / kernels::kGrain] = pass.measure(range_of(at, std::min(at + kernels::kGrain, end)), factors);
  });
  TensorSums sums{};
  for (const TensorSums& part : parts) sums[0] += part[0], sums[1] += part[1];
  return sums;
}

}  // namespace dlrun::runtime
