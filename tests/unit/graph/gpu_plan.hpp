// What tests ask of a plan for a GPU: the part of it that lifetimes depend on, and whether what is packed by
// them shares memory while both are needed.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/lifetimes.hpp"
#include "runtime/cuda/lowering.hpp"

namespace dlrun::runtime::test {

inline DlrunCudaPlan plan_of(const CudaPlan& flat, std::int64_t batch) {
  DlrunCudaPlan plan{};
  plan.nodes = flat.nodes.data(), plan.count = flat.nodes.size(), plan.batch = batch;
  return plan;
}

/// Pairs of values and gradients of that plan, of 8 rows in bf16, which share memory while both are needed.
inline std::size_t clashes(const CudaPlan& flat) {
  const DlrunCudaPlan plan = plan_of(flat, 8);
  std::vector<Lifetime> all = cuda::value_lifetimes(plan, 2);
  const std::vector<Lifetime> gradients = cuda::gradient_lifetimes(plan, 2);
  all.insert(all.end(), gradients.begin(), gradients.end());
  const Packing placed = pack(all, cuda::kPackingAlignment);
  std::size_t found = 0;
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      const bool in_time = all[a].first <= all[b].last && all[b].first <= all[a].last;
      const bool in_memory = placed.offsets[a] < placed.offsets[b] + all[b].bytes &&
                             placed.offsets[b] < placed.offsets[a] + all[a].bytes;
      if (all[a].bytes != 0 && all[b].bytes != 0 && in_time && in_memory) ++found;
    }
  return found;
}

}  // namespace dlrun::runtime::test
