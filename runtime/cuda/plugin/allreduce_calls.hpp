// What sums over ranks need of the device, as the table has it, and the kernels behind it.
#pragma once

#include <cuda_runtime.h>

#include "runtime/cuda/plugin/allreduce_table.h"

namespace dlrun::cuda {

extern const DlrunCudaSumCalls kSumCalls;

// Rounded to the nearest, to even on a tie, as the CPU's (runtime/base/comm_dtype.hpp).
void pack(DlrunCudaCommDtype dtype, void* to, const float* from, std::size_t count, cudaStream_t stream);
void unpack(DlrunCudaCommDtype dtype, float* to, const void* from, std::size_t count, cudaStream_t stream);
void add(float* to, const float* left, const float* right, std::size_t count, cudaStream_t stream);
void pack_sum(DlrunCudaCommDtype dtype, void* to, const DlrunCudaTerms& terms, std::size_t count,
              cudaStream_t stream);

}  // namespace dlrun::cuda
