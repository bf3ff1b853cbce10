// What forms of attention share: the sizes, and where queries, keys and values lie in a packed row. A form
// does the same in another way: fused_attention.cu by cuDNN, plain_attention.cu by kernels of our own.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

struct AttentionSizes {
  std::int64_t batch, length, heads, key_heads, width;

  constexpr std::int64_t packed() const {
    return (heads + 2 * key_heads) * width;
  }                                                                  // numbers of a packed row
  constexpr std::int64_t features() const { return heads * width; }  // of a row of the result
  constexpr std::int64_t keys_at() const { return heads * width; }
  constexpr std::int64_t values_at() const { return (heads + key_heads) * width; }
  constexpr std::int64_t queries() const { return batch * heads * length; }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(width)); }
};

// Dropout of the shares of attention: each query of each head has a row of the mask, keyed by its number
// among all heads of the whole model. No key: there is none.
struct ShareDropout {
  const std::uint64_t* key = nullptr;  // of the step
  std::uint32_t dies_below = 0;
  float scale = 1;  // of what survives
  std::int64_t first_head = 0, all_heads = 0;
};

struct AttentionArrays {
  const void* packed;
  void* out;
  float* figures;  // of each query: the logarithm of the sum of its exponentials
  const void* grad_out;
  void* grad_packed;
  ShareDropout dropout = {};
};

class AttentionForm {
 public:
  virtual ~AttentionForm() = default;
  virtual void forward(Device& device, const AttentionArrays& arrays) = 0;
  virtual void backward(Device& device, const AttentionArrays& arrays) = 0;
};

// Null where cuDNN has it not: for f32, and for some widths. It draws masks of its own: no form for dropout.
std::unique_ptr<AttentionForm> make_fused_attention(Device& device, const AttentionSizes& sizes);
std::unique_ptr<AttentionForm> make_plain_attention(Device& device, const AttentionSizes& sizes);

}  // namespace dlrun::cuda
