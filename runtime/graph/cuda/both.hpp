// DLRUN_CUDA_BOTH: before a function that kernels call and that tests call on the host, where no CUDA is.
#pragma once

#ifdef __CUDACC__
#define DLRUN_CUDA_BOTH __host__ __device__
#else
#define DLRUN_CUDA_BOTH
#endif
