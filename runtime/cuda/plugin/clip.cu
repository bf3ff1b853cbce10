// See clip.hpp.
#include "runtime/cuda/plugin/clip.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kThreads = 256;
// Sums of blocks, then that of all, then the factor.
constexpr unsigned kParts = 1024, kSum = kParts, kFactor = kParts + 1;

__device__ double over_block(double sum) {
  __shared__ double warps[kThreads / 32];
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (const double one : warps) sum += one;
  return sum;
}

__device__ double squares_of_thread(const float* gradients, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(kParts) * kThreads)
    sum += static_cast<double>(gradients[i]) * gradients[i];
  return sum;
}

__global__ void square_all(double* parts, const float* gradients, std::int64_t count) {
  const double sum = over_block(squares_of_thread(gradients, count));
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void square_slices(double* parts, const float* gradients, const NormSlice* slices,
                              std::size_t count) {
  double sum = 0;
  for (std::size_t slice = 0; slice < count; ++slice)
    sum += slices[slice].share * squares_of_thread(gradients + slices[slice].offset,
                                                   static_cast<std::int64_t>(slices[slice].length));
  sum = over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void add_parts(double* parts) {
  double sum = 0;
  for (unsigned part = threadIdx.x; part < kParts; part += kThreads) sum += parts[part];
  sum = over_block(sum);
  if (threadIdx.x == 0) parts[kSum] = sum;
}

__global__ void add_ranks(double* sum, const double* sums, std::size_t ranks) {
  double of_all = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) of_all += sums[rank];
  *sum = of_all;
}

__global__ void find_factor(double* factor, const double* sums, std::size_t ranks, double scale,
                            double limit) {
  double sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) sum += sums[rank];
  *factor = fmin(1.0, limit / (scale * sqrt(sum) + 1e-6));
}

}  // namespace

void GradientNorm::make(Device& device) {
  parts_ = static_cast<double*>(device.memory.device((kFactor + 1) * sizeof(double), "the gradients' norm"));
}

void GradientNorm::set_slices(Device& device, const std::vector<NormSlice>& slices) {
  const std::size_t bytes = slices.size() * sizeof(NormSlice);
  void* const there = device.memory.device(bytes, "slices of gradients");
  check(cudaMemcpy(there, slices.data(), bytes, cudaMemcpyHostToDevice), "slices of gradients");
  slices_ = static_cast<const NormSlice*>(there), slice_count_ = slices.size();
}

double* GradientNorm::all(Device& device, std::size_t ranks) {
  if (ranks > room_)
    all_ = static_cast<double*>(device.memory.device(ranks * sizeof(double), "the ranks' norms"));
  room_ = ranks > room_ ? ranks : room_;
  ranks_ = ranks;
  return all_;
}

void GradientNorm::add_all(Device& device) {
  if (ranks_ == 0) return;
  add_ranks<<<1, 1, 0, device.stream>>>(parts_ + kSum, all_, ranks_);
  check(cudaGetLastError(), "the gradients' norm");
  ranks_ = 0;
}

const double* GradientNorm::own() const {
  return parts_ + kSum;
}

void GradientNorm::sum_squares(Device& device, std::size_t count) {
  ranks_ = 0;
  if (slices_ == nullptr)
    square_all<<<kParts, kThreads, 0, device.stream>>>(parts_, device.gradients,
                                                       static_cast<std::int64_t>(count));
  else
    square_slices<<<kParts, kThreads, 0, device.stream>>>(parts_, device.gradients, slices_, slice_count_);
  add_parts<<<1, kThreads, 0, device.stream>>>(parts_);
  check(cudaGetLastError(), "the gradients' norm");
}

void GradientNorm::find_clip(Device& device, float scale, float limit) const {
  find_factor<<<1, 1, 0, device.stream>>>(parts_ + kFactor, ranks_ == 0 ? own() : all_,
                                          ranks_ == 0 ? 1 : ranks_, static_cast<double>(scale),
                                          static_cast<double>(limit));
  check(cudaGetLastError(), "clipping gradients");
  device.clip = parts_ + kFactor;
}

}  // namespace dlrun::cuda
