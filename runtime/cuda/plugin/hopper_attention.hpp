// The gradient of attention on Hopper's matrix units, for bf16 and heads of 64 features that each have keys
// of their own. What it reads of the forward pass is the result and the logarithms, so any form can do that
// one.
#pragma once

#include "runtime/cuda/plugin/attention.hpp"

namespace dlrun::cuda {

class HopperAttentionGradient {
 public:
  // Whether this GPU and these sizes are those that it is for.
  static bool fits(const Device& device, const AttentionSizes& sizes);
  static std::size_t workspace_bytes(const AttentionSizes& sizes);

  explicit HopperAttentionGradient(const AttentionSizes& sizes) : sizes_(sizes) {}
  // `workspace`: of workspace_bytes(), which any layer may have used before.
  void run(Device& device, const AttentionArrays& arrays, void* workspace) const;

 private:
  AttentionSizes sizes_;
};

}  // namespace dlrun::cuda
