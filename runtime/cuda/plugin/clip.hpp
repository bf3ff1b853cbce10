// Clipping of the gradients' norm on the device: PyTorch's clip_grad_norm_. Sums have a fixed order, so that
// all ranks find the same factor. Where ranks have parts of the gradients, each squares its own slices; who
// uses it exchanges the sums.
#pragma once

#include <vector>

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// A part of the gradients; its squares count `share` times.
struct NormSlice {
  std::size_t offset, length;
  double share;
};

class GradientNorm {
 public:
  void make(Device& device);
  // These in place of all gradients.
  void set_slices(Device& device, const std::vector<NormSlice>& slices);

  // To own(): of the first `count` gradients, or of the slices.
  void sum_squares(Device& device, std::size_t count);
  const double* own() const;
  // Room for the sums of so many ranks, which find_clip() adds up in place of own().
  double* all(Device& device, std::size_t ranks);
  // Once these are there: own() becomes their sum. It stays where all() was not asked for.
  void add_all(Device& device);
  // device.clip: what the update multiplies gradients by, so that with `scale` their norm is at most `limit`.
  void find_clip(Device& device, float scale, float limit) const;

 private:
  double* parts_ = nullptr;
  double* all_ = nullptr;
  std::size_t ranks_ = 0, room_ = 0;  // in use, and that there is room for
  const NormSlice* slices_ = nullptr;
  std::size_t slice_count_ = 0;
};

}  // namespace dlrun::cuda
