// See clip.hpp.
#include "runtime/cuda/plugin/clip.hpp"
#include "runtime/cuda/plugin/warp.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kThreads = 256;

__device__ double over_block(double sum) {
  __shared__ double warps[kThreads / 32];
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (const double one : warps) sum += one;
  return sum;
}

__global__ void sum_squares(double* parts, const float* gradients, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(kNormParts) * kThreads)
    sum += static_cast<double>(gradients[i]) * gradients[i];
  sum = over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The factor, behind the parts.
__global__ void find_factor(double* parts, double scale, double limit) {
  double sum = 0;
  for (unsigned part = threadIdx.x; part < kNormParts; part += kThreads) sum += parts[part];
  sum = over_block(sum);
  if (threadIdx.x == 0) parts[kNormParts] = fmin(1.0, limit / (scale * sqrt(sum) + 1e-6));
}

}  // namespace

void clip_gradients(Device& device, double* parts, std::int64_t count, float scale, float limit) {
  float* const gradients = device.gradients;
  sum_squares<<<kNormParts, kThreads, 0, device.stream>>>(parts, gradients, count);
  find_factor<<<1, kThreads, 0, device.stream>>>(parts, static_cast<double>(scale),
                                                 static_cast<double>(limit));
  check(cudaGetLastError(), "clipping gradients");
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const double factor = parts[kNormParts];
    if (factor < 1) gradients[i] = static_cast<float>(gradients[i] * factor);
  });
}

}  // namespace dlrun::cuda
