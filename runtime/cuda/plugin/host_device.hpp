// DLRUN_HOST_DEVICE: before a function that kernels call and that tests call on the host, where no CUDA is.
#pragma once

#ifdef __CUDACC__
#define DLRUN_HOST_DEVICE __host__ __device__
#else
#define DLRUN_HOST_DEVICE
#endif
