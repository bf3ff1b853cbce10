// The part of the C table that sums over ranks are made of, beside NCCL: memory, copies, a call of the host,
// and the loops of a communication dtype. `stream` is a cudaStream_t; all but memory may be captured in a
// graph. Memory and streams are of the calling thread's current device.
#pragma once

#include <stddef.h>

enum DlrunCudaCommDtype { DLRUN_CUDA_COMM_BF16, DLRUN_CUDA_COMM_F16 };
enum DlrunCudaPlace { DLRUN_CUDA_ON_DEVICE, DLRUN_CUDA_PINNED };

// Terms of a sum: `own` in f32, the others packed, each `stride` numbers behind the last, by place; that of
// `own_place` is not read.
struct DlrunCudaTerms {
  const float* own;
  const void* others;
  size_t stride;
  int own_place, places;
};

// Functions that return int answer 0, else the reason is in the table's error_text().
struct DlrunCudaSumCalls {
  int (*take)(enum DlrunCudaPlace place, size_t bytes, void** memory);
  int (*release)(enum DlrunCudaPlace place, void* memory);
  int (*copy)(void* to, const void* from, size_t bytes, void* stream);
  // On a thread of the driver's; the function makes no CUDA call.
  int (*call_host)(void (*function)(void* context), void* context, void* stream);
  int (*pack)(enum DlrunCudaCommDtype dtype, void* to, const float* from, size_t count, void* stream);
  int (*unpack)(enum DlrunCudaCommDtype dtype, float* to, const void* from, size_t count, void* stream);
  // In f32; `to` may be one of the two.
  int (*add)(float* to, const float* left, const float* right, size_t count, void* stream);
  int (*pack_sum)(enum DlrunCudaCommDtype dtype, void* to, const struct DlrunCudaTerms* terms, size_t count,
                  void* stream);
};
