// For optimizers that look at a whole tensor before they change it: sums over each tensor of the arena, then
// an update that knows them. A tensor's sums are parts in a fixed order, so that the same numbers give the
// same bits.
#pragma once

#include "runtime/cuda/plugin/optimizers/optimizer.hpp"

namespace dlrun::cuda {

constexpr unsigned kTensorThreads = 256;

struct TensorSums {
  double first = 0, second = 0;
};

// A tensor of one dimension has none, nor one that is exempt.
inline __device__ bool has_decay(const DlrunCudaTensor& tensor) {
  return tensor.is_vector == 0 && tensor.decays != 0;
}

// partial[tensor][split] = the sums of measure(i, tensor) over the split's numbers of the tensor.
template <class Measure>
__global__ void measure_tensors(const DlrunCudaTensor* tensors, TensorSums* partial, Measure measure) {
  __shared__ TensorSums shared[kTensorThreads];
  const DlrunCudaTensor tensor = tensors[blockIdx.y];
  TensorSums sum;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < tensor.length;
       i += kTensorSplits * blockDim.x) {
    const TensorSums one = measure(tensor.offset + i, tensor);
    sum.first += one.first, sum.second += one.second;
  }
  shared[threadIdx.x] = sum;
  for (unsigned half = kTensorThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    shared[threadIdx.x].first += shared[threadIdx.x + half].first;
    shared[threadIdx.x].second += shared[threadIdx.x + half].second;
  }
  if (threadIdx.x == 0) partial[blockIdx.y * kTensorSplits + blockIdx.x] = shared[0];
}

// update(i, ratio, tensor) for every number, with ratio = ratio_of(sums of its tensor, tensor).
template <class Ratio, class Update>
__global__ void update_tensors(const DlrunCudaTensor* tensors, const TensorSums* partial, Ratio ratio_of,
                               Update update) {
  __shared__ float ratio;
  const DlrunCudaTensor tensor = tensors[blockIdx.y];
  if (threadIdx.x == 0) {
    TensorSums sum;
    for (unsigned split = 0; split < kTensorSplits; ++split) {
      const TensorSums& part = partial[blockIdx.y * kTensorSplits + split];
      sum.first += part.first, sum.second += part.second;
    }
    ratio = ratio_of(sum, tensor);
  }
  __syncthreads();
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < tensor.length;
       i += kTensorSplits * blockDim.x)
    update(tensor.offset + i, ratio, tensor);
}

/// Both passes over every tensor.
template <class Measure, class Ratio, class Update>
void update_by_tensors(Device& device, Measure measure, Ratio ratio_of, Update update) {
  if (device.tensor_count == 0) return;
  const dim3 grid(kTensorSplits, static_cast<unsigned>(device.tensor_count));
  auto* const partial = static_cast<TensorSums*>(device.tensor_sums);
  measure_tensors<<<grid, kTensorThreads, 0, device.stream>>>(device.parameters, partial, measure);
  update_tensors<<<grid, kTensorThreads, 0, device.stream>>>(device.parameters, partial, ratio_of, update);
  check(cudaGetLastError(), "an update by tensors");
}

}  // namespace dlrun::cuda
