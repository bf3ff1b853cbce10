// The C table between the training runtime and its CUDA half: all that crosses the border of the plug-in. No
// CUDA type and no C++ type is in it. A plan goes over once as a flat list of operators; after that only
// steps and numbers do. Activations are NHWC on the device, weights OHWI; the host side converts.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DLRUN_CUDA_TABLE_VERSION 2u
#define DLRUN_CUDA_TABLE_SYMBOL "dlrun_cuda_table"

enum DlrunCudaKind {
  DLRUN_CUDA_INPUT,
  DLRUN_CUDA_CONVOLUTION,  // also fully connected: 1x1 over one pixel of all its inputs
  DLRUN_CUDA_MAX_POOL,
  DLRUN_CUDA_AVERAGE_POOL,
  DLRUN_CUDA_BATCH_NORM,  // with a second input: that is added before the ReLU
  DLRUN_CUDA_RELU,
  DLRUN_CUDA_DROPOUT,
  DLRUN_CUDA_ADD,
  DLRUN_CUDA_LOSS,
  DLRUN_CUDA_NOTHING  // joined the node behind it
};
enum DlrunCudaPrecision { DLRUN_CUDA_F32, DLRUN_CUDA_BF16 };
enum DlrunCudaArena { DLRUN_CUDA_VALUES, DLRUN_CUDA_MOMENTA, DLRUN_CUDA_STATISTICS };
enum DlrunCudaGradients { DLRUN_CUDA_STAY, DLRUN_CUDA_TRAVEL };  // travel: copied to the host and back

#define DLRUN_CUDA_NOWHERE ((size_t)-1)

struct DlrunCudaNode {
  enum DlrunCudaKind kind;
  size_t inputs[2];
  size_t input_count;
  int64_t in_channels, in_height, in_width;  // of inputs[0]
  int64_t channels, height, width;           // of the output
  int64_t window, stride, padding;           // convolution and pooling
  int relu;                                  // 1: followed by a ReLU in the same pass
  float epsilon, share, probability;
  // Floats from the start of their arena, DLRUN_CUDA_NOWHERE where there is none.
  size_t weight, bias, running_mean, running_variance;
  uint64_t needs_gradient;  // 1: the gradient of the output is wanted
};

struct DlrunCudaPlan {
  const struct DlrunCudaNode* nodes;
  size_t count;
  int64_t batch;
  enum DlrunCudaPrecision precision;
  enum DlrunCudaGradients gradients;
  size_t floats;      // of the arenas of values, gradients and momenta
  size_t spare;       // of them at the end, which an update leaves alone
  size_t statistics;  // floats
  size_t dropouts;
};

struct DlrunCudaResult {
  double loss_sum;
  int64_t correct;
};

struct DlrunCudaRates {
  float learning_rate, momentum, weight_decay, gradient_scale;
};

// Functions that return int answer 0, else the reason is in error_text().
struct DlrunCudaTable {
  unsigned version;
  int (*device_count)(int* count);
  int (*device_name)(int device, char* text, size_t capacity);
  int (*create)(const struct DlrunCudaPlan* plan, int device, void** engine);
  void (*destroy)(void* engine);
  float* (*input)(void* engine);  // pinned, batch x channels x height x width
  int32_t* (*labels)(void* engine);
  float* (*gradients)(void* engine);  // pinned, where they travel
  size_t (*memory_bytes)(void* engine);
  // `keys`: one a dropout layer.
  int (*train)(void* engine, const uint64_t* keys, struct DlrunCudaResult* result);
  int (*evaluate)(void* engine, struct DlrunCudaResult* result);
  int (*apply)(void* engine, const struct DlrunCudaRates* rates);
  // Milliseconds of each node's forward (2 i) and backward (2 i + 1), each timed alone in a graph; then of
  // copying the batch, of an update, and of a whole step (update left out) on a batch that is on the GPU
  // already. What it computes is no training: state and results mean nothing after it.
  int (*profile)(void* engine, float* milliseconds);
  int (*read)(void* engine, enum DlrunCudaArena arena, size_t offset, size_t count, float* out);
  int (*write)(void* engine, enum DlrunCudaArena arena, size_t offset, size_t count, const float* values);
  void (*error_text)(char* text, size_t capacity);  // of the calling thread's last failed call
};
