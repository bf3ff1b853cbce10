// The optimizers' kernels on a GPU: one pass over the whole arena, which also writes the bf16 copies that
// operators read. Their arithmetic is the CPU's (runtime/optim).
#pragma once

#include "runtime/cuda/plugin/device.hpp"
#include "runtime/optim/factors.hpp"

namespace dlrun::cuda {

// Updates the first `count` numbers of the arenas; `factors`: runtime::kMaxFactors of them.
using UpdateFunction = void (*)(Device& device, std::int64_t count, const float* factors);

#ifdef __CUDACC__
// The arena's gradients, as the limit of their norm leaves them: they are read once.
class Gradients {
 public:
  explicit Gradients(const Device& device) : from_(device.gradients), clip_(device.clip) {}
  template <class Index>
  __device__ float operator[](Index i) const {
    const float gradient = from_[i];
    if (clip_ == nullptr || *clip_ >= 1) return gradient;
    return static_cast<float>(gradient * *clip_);
  }

 private:
  const float* from_;
  const double* clip_;
};

// The step's weight decay, but for parameters that have none.
struct Decay {
  float of_step;
  const std::uint8_t* exempt;
  __device__ float at(std::int64_t i) const {
    return exempt != nullptr && exempt[i / DLRUN_CUDA_SLICE_ALIGNMENT] != 0 ? 0 : of_step;
  }
};
#endif

// By its name in optim/list.hpp; throws where there is none.
UpdateFunction find_update(const char* optimizer);
// Writes the bf16 copies of the first `count` values, where the plan has copies.
void refresh(Device& device, std::size_t count);

}  // namespace dlrun::cuda
