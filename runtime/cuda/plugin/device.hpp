// What all operators on the device share: the stream, cuDNN's handle, tensors, and how a call that fails is
// named. Inside the plug-in a failure is thrown as Failure; plugin.cu catches it at the border. Included by
// the files of this folder only.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include "runtime/cuda/table.h"
#include "runtime/graph/operations.hpp"
#include "runtime/optim/factors.hpp"

namespace dlrun::cuda {

namespace op = runtime::op;

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Failure(std::string(what) + " failed: " + cudaGetErrorString(error));
}
inline void check(cudnnStatus_t status, const std::string& what) {
  if (status != CUDNN_STATUS_SUCCESS) throw Failure(what + " failed: " + cudnnGetErrorString(status));
}

// Of a call of the host's side, which keeps the reason.
inline void told(int code, const char* what) {
  if (code != 0) throw Failure(std::string(what) + " failed");
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

class ColumnSums;

// A value of the plan. `written`: a reader already left its gradient, so the next one adds.
struct Tensor {
  void* value = nullptr;
  void* gradient = nullptr;
  std::int64_t elements = 0;
  bool written = false;
  bool gradient_is_inner = false;   // of a GELU that joined a product: what is left is the gradient before it
  bool gradient_is_summed = false;  // over its rows, by the layer that completes it (Device::bias_sums)
  std::size_t last_reader = 0;      // the node whose backward leaves its gradient first
  std::size_t first_reader = 0;     // and the one whose backward completes it
  bool is_group_term = false;       // of its gradient each rank of the tensor group has a term
  std::int64_t slices = 1;          // of a value that is gathered from these: their number,
  std::int64_t slice = 0;           // and that of this rank's, of which alone it gets the gradient's sum
  bool group_call_runs = false;     // the group adds it up or gathers it beside main
  void* again = nullptr;            // where it is gathered again for the way back
  bool is_again = false;            // it has been, in this pass
  bool wanted = false;  // somebody reads the value itself; the image may be read as the host left it instead

  void begin_pass() { written = is_again = false; }
  const void* value_for_backward() const { return again != nullptr ? again : value; }
};

enum class Mode { train, evaluate };

// The images as the host sent them, channels first.
struct Rows {
  const float* numbers = nullptr;
  const std::uint8_t* bytes = nullptr;  // in place of numbers
  float scale[DLRUN_CUDA_MAX_CHANNELS] = {}, shift[DLRUN_CUDA_MAX_CHANNELS] = {};
  // The number at `i`, which is of that channel: in the CPU's arithmetic, product and sum rounded each.
  __device__ float at(std::int64_t i, int channel) const {
    if (bytes == nullptr) return numbers[i];
    return __fadd_rn(__fmul_rn(static_cast<float>(bytes[i]), scale[channel]), shift[channel]);
  }
};

class VolumePass;

// What was chosen for the passes of a convolution.
struct Algorithms {
  cudnnConvolutionFwdAlgo_t forward{};
  cudnnConvolutionBwdFilterAlgo_t weights{};
  cudnnConvolutionBwdDataAlgo_t data{};
  std::optional<cublasLtMatmulAlgo_t> forward_product, weights_product, data_product;  // in place of those
  std::shared_ptr<const VolumePass> forward_volume, weights_volume, data_volume;       // in place of all
};

// A stream with what libraries need to work on it.
struct Stream {
  cudaStream_t stream = nullptr;
  cudnnHandle_t dnn = nullptr;
  cublasLtHandle_t products = nullptr;  // the same for all streams
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  void* planes =
      nullptr;  // where a convolution over a volume has its planes side by side (depth_windows.hpp)
  std::size_t plane_bytes = 0;
};

constexpr std::int64_t kBiasSplits = 64;
constexpr unsigned kTensorSplits = 64;
constexpr std::size_t kResults = 7;  // loss, correct, the generator's loss, and the four sums of targets

struct Device {
  cudaStream_t stream = nullptr;  // main.stream
  Stream main, side;              // side: gradients of weights, beside the way back through the layers
  cudaEvent_t forked = nullptr, joined = nullptr;
  bool side_runs = false;
  const DlrunCudaPeers* peers = nullptr;
  cudaStream_t group_stream = nullptr;  // work of the tensor group, beside main
  cudaEvent_t term = nullptr, group_done = nullptr;
  std::int64_t batch = 0;
  DlrunCudaPrecision precision = DLRUN_CUDA_F32;
  bool by_shape = false;  // algorithms are chosen by the shape and the device, not by time
  std::vector<Tensor> tensors;
  float *values = nullptr, *gradients = nullptr, *statistics = nullptr;
  float* state[runtime::kMaxStateArenas] = {};  // of the optimizer, then the average
  // The parameters' slices of the arenas, and room for kTensorSplits pairs of sums of each.
  const DlrunCudaTensor* parameters = nullptr;
  std::size_t tensor_count = 0;
  void* tensor_sums = nullptr;
  const std::uint8_t* exempt = nullptr;  // of each slice of DLRUN_CUDA_SLICE_ALIGNMENT: 1: no weight decay
  Bf16* copies = nullptr;                // of the values, where the plan is bf16
  Rows input;
  std::int32_t* labels = nullptr;
  std::int32_t* mixed = nullptr;  // where labels are mixed: another of each row, then the weights as floats
  float* targets = nullptr;       // where the plan has them
  std::uint64_t* keys = nullptr;
  float* partial = nullptr;             // kBiasSplits sums of each channel of the widest bias
  void* attention_workspace = nullptr;  // workspace of all layers of attention
  std::size_t attention_bytes = 0;
  const std::int32_t* stay = nullptr;            // of shards: not 0 in a step where statistics do not move
  double* result = nullptr;                      // kResults sums over the rows of the reported losses
  std::map<std::string, Algorithms> algorithms;  // by shape
  Memory memory;
  std::map<std::string, cublasLtMatmulAlgo_t> products;  // by shape
  // By tensor: what sums the rows of its gradient, for the bias of the layer that gives it.
  std::map<std::size_t, const ColumnSums*> bias_sums;
  const double* clip = nullptr;  // of an update: what its gradients are multiplied by, where that is below 1

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
  // Before the backward of each reader of its value, where the plan says that it is made again for these.
  virtual void restore(Device& /*device*/) {}
  // Of the end of a language model, after an evaluation: the scores of what follows a position, batch x
  // vocabulary numbers. False where it is none.
  virtual bool next_scores(Device& /*device*/, std::int64_t /*position*/, float* /*to*/) { return false; }
};
using OperatorPtr = std::unique_ptr<Operator>;

// Of operators that take no activation but ReLU.
inline bool rectifies(const DlrunCudaNode& node) {
  return node.activation == DLRUN_CUDA_RELU;
}

// The settings of the node's operator.
template <class Spec>
Spec settings_of(const DlrunCudaNode& node) {
  if (node.settings_bytes != sizeof(Spec))
    throw Failure(std::string("the settings of '") + node.kind + "' are of another build");
  Spec out;
  std::memcpy(&out, node.settings, sizeof out);
  return out;
}

// Kinds of convolution.
OperatorPtr make_grouped_convolution(Device& device, const DlrunCudaNode& node, std::size_t index);
// The first convolution of a model where another arrangement of its pixels is faster.
bool is_stem(const Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node);
OperatorPtr make_stem(Device& device, const DlrunCudaNode& node, std::size_t index);

inline unsigned blocks(std::int64_t count, int threads = 256) {
  const std::int64_t wanted = (count + threads - 1) / threads;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > 65535 * 16 ? 65535 * 16 : wanted);
}

// Main waits for the side stream; the side stream starts at what main has done so far. The plan's lifetimes
// rely on it: what a convolution's side work reads stays until the next convolution on the way back joins it.
inline void join_side(Device& device) {
  if (!device.side_runs) return;
  check(cudaEventRecord(device.joined, device.side.stream), "joining streams");
  check(cudaStreamWaitEvent(device.main.stream, device.joined, 0), "joining streams");
  device.side_runs = false;
}
inline void fork_side(Device& device) {
  check(cudaEventRecord(device.forked, device.main.stream), "forking streams");
  check(cudaStreamWaitEvent(device.side.stream, device.forked, 0), "forking streams");
  device.side_runs = true;
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
// What `body` issues on the stream, as a graph.
template <class Body>
cudaGraphExec_t captured(cudaStream_t stream, const Body& body) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a graph");
  cudaGraph_t graph = nullptr;
  try {
    body();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "capturing a graph");
  cudaGraphExec_t made = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "making a graph");
  return made;
}

// Milliseconds of `body` inside a graph: the best of a few launches of several in a row, so that neither the
// host's launches nor a disturbance counts.
template <class Body>
float milliseconds_of(cudaStream_t stream, const Body& body) {
  constexpr int kInARow = 3, kLaunches = 4;
  struct Timer {
    cudaGraphExec_t graph = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    ~Timer() {
      if (graph != nullptr) cudaGraphExecDestroy(graph);
      if (begin != nullptr) cudaEventDestroy(begin);
      if (end != nullptr) cudaEventDestroy(end);
    }
  } timer;
  timer.graph = captured(stream, [&] {
    for (int i = 0; i < kInARow; ++i) body();
  });
  check(cudaEventCreate(&timer.begin), "a timer");
  check(cudaEventCreate(&timer.end), "a timer");
  float best = INFINITY;
  for (int launch = 0; launch < kLaunches; ++launch) {
    check(cudaEventRecord(timer.begin, stream), "a timer");
    check(cudaGraphLaunch(timer.graph, stream), "a graph to be timed");
    check(cudaEventRecord(timer.end, stream), "a timer");
    check(cudaEventSynchronize(timer.end), "a graph to be timed");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, timer.begin, timer.end), "a timer");
    if (launch > 0 && milliseconds < best) best = milliseconds;
  }
  return best / kInARow;
}

#ifdef __CUDACC__
template <class F>
void for_each(cudaStream_t stream, std::int64_t count, F f) {
  each_kernel<<<blocks(count), 256, 0, stream>>>(count, f);
  check(cudaGetLastError(), "a kernel's launch");
}

// A kernel whose blocks may be brought up while the kernel before it on the stream ends: it begins with
// cudaGridDependencySynchronize(), and that one lets it by cudaTriggerProgrammaticLaunchCompletion().
template <class... Parameters, class... Arguments>
void launch_early(cudaStream_t stream, dim3 grid, dim3 block, void (*kernel)(Parameters...),
                  Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = grid, how.blockDim = block, how.stream = stream, how.attrs = &early, how.numAttrs = 1;
  check(cudaLaunchKernelEx(&how, kernel, static_cast<Parameters>(arguments)...), "a kernel's launch");
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
