// What all operators on the device share: the stream, cuDNN's handle, tensors, and how a call that fails is
// named. Inside the plug-in a failure is thrown as Failure; plugin.cu catches it at the border. Included by
// the files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "runtime/graph/cuda/table.h"

namespace dlrun::cuda {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Failure(std::string(what) + " failed: " + cudaGetErrorString(error));
}
inline void check(cudnnStatus_t status, const std::string& what) {
  if (status != CUDNN_STATUS_SUCCESS) throw Failure(what + " failed: " + cudnnGetErrorString(status));
}

using Bf16 = __nv_bfloat16;

__device__ inline float number(float value) {
  return value;
}
__device__ inline float number(Bf16 value) {
  return __bfloat162float(value);
}
__device__ inline void put(float& to, float value) {
  to = value;
}
__device__ inline void put(Bf16& to, float value) {
  to = __float2bfloat16(value);
}

// Memory of the device, counted.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (void* block : blocks_) cudaFree(block);
    for (void* block : pinned_) cudaFreeHost(block);
  }
  void* device(std::size_t bytes, const char* what);
  void* pinned(std::size_t bytes);
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<void*> blocks_, pinned_;
  std::size_t bytes_ = 0;
};

// A value of the plan. `written`: a reader already left its gradient, so the next one adds.
struct Tensor {
  void* value = nullptr;
  void* gradient = nullptr;
  std::int64_t elements = 0;
  bool written = false;
};

enum class Mode { train, evaluate };

struct Device {
  cudaStream_t stream = nullptr;
  cudnnHandle_t dnn = nullptr;
  std::int64_t batch = 0;
  DlrunCudaPrecision precision = DLRUN_CUDA_F32;
  std::vector<Tensor> tensors;
  float *values = nullptr, *gradients = nullptr, *momenta = nullptr, *statistics = nullptr;
  Bf16* copies = nullptr;  // of the values, where the plan is bf16
  float* input = nullptr;  // as the host filled it
  std::int32_t* labels = nullptr;
  std::uint64_t* keys = nullptr;
  double* result = nullptr;  // loss, correct
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  Memory memory;

  bool half() const { return precision == DLRUN_CUDA_BF16; }
  std::size_t size() const { return half() ? sizeof(Bf16) : sizeof(float); }
  const void* weights(std::size_t offset) const {
    return half() ? static_cast<const void*>(copies + offset) : values + offset;
  }
};

// One operator; backward leaves the gradient of each input that has one.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual void forward(Device& device, Mode mode) = 0;
  virtual void backward(Device& device) = 0;
};
using Made = std::unique_ptr<Operator>;

Made make_input(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_convolution(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_max_pool(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_average_pool(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_batch_norm(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_relu(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_dropout(Device& device, const DlrunCudaNode& node, std::size_t index, std::size_t layer);
Made make_add(Device& device, const DlrunCudaNode& node, std::size_t index);
Made make_loss(Device& device, const DlrunCudaNode& node, std::size_t index);

// update.cu: the optimizer over the whole arena, and the bf16 copies.
void update(Device& device, std::size_t count, const DlrunCudaRates& rates);
void refresh(Device& device, std::size_t count);

inline unsigned blocks(std::int64_t count, int threads = 256) {
  const std::int64_t wanted = (count + threads - 1) / threads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > 65535 * 16 ? 65535 * 16 : wanted);
}

// Whether the caller adds to the gradient instead of writing it; from now on it is written.
inline bool claim(Tensor& tensor) {
  const bool adds = tensor.written;
  tensor.written = true;
  return adds;
}

// for_each(count, f): f(i) on the device for every i below `count`.
template <class F>
__global__ void each_kernel(std::int64_t count, F f) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    f(i);
}
#ifdef __CUDACC__
template <class F>
void for_each(cudaStream_t stream, std::int64_t count, F f) {
  each_kernel<<<blocks(count), 256, 0, stream>>>(count, f);
  check(cudaGetLastError(), "a kernel's launch");
}

// body(type pointer maker): calls `body` with a value of the activation type.
template <class Body>
void by_type(const Device& device, const Body& body) {
  if (device.half())
    body(Bf16{});
  else
    body(float{});
}
#endif

}  // namespace dlrun::cuda
