// What an engine whose model is a stage of a pipeline asks of the stages beside it. Included by table.h.
#pragma once

#include <stddef.h>

// Halves of a training step of one batch, between which those of other batches come. Kept: a backward whose
// gradients are kept, for the next DLRUN_CUDA_BACKWARD to add them to its own.
enum DlrunCudaHalf { DLRUN_CUDA_FORWARD, DLRUN_CUDA_BACKWARD, DLRUN_CUDA_BACKWARD_KEPT };

// Work on `stream` (a cudaStream_t), never while it is captured, but for the gradient of an update's last
// batch: 0, or it failed. NULL: the engine has no stages beside it yet.
struct DlrunCudaStageCalls {
  void* context;
  size_t stages;
  // From and to the stage before. A gradient may wait for its turn, and then stays as it is until values were
  // received or a backward begins.
  int (*receive_values)(void* context, void* values, size_t bytes, void* stream);
  int (*send_gradients)(void* context, const void* gradients, size_t bytes, void* stream);
  // To and from the stage behind.
  int (*send_values)(void* context, const void* values, size_t bytes, void* stream);
  int (*receive_gradients)(void* context, void* gradients, size_t bytes, void* stream);
  // All gradients of an update are there; of the buckets that wait (DlrunCudaBucket), those of this rank
  // alone. Afterwards these are as the others.
  int (*finish)(void* context, float* gradients, void* stream);
  // `bytes` of each stage, in their order.
  int (*exchange)(void* context, const void* mine, void* all, size_t bytes, void* stream);
};
