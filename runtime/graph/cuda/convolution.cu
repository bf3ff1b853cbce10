// Convolution over cuDNN, NHWC, and fully connected as its 1x1 case. At compile time each of the three passes
// is timed in every algorithm that gives the same bits in every run, and the fastest is kept. Bias and ReLU
// are kernels of our own. f32 means f32: no TF32 unless it is asked for.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{512} << 20;

template <class T>
void add_bias(Device& device, T* to, const float* bias, std::int64_t count, std::int64_t channels, bool relu) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float value = number(to[i]) + (bias == nullptr ? 0.0F : bias[i % channels]);
    put(to[i], relu && value < 0 ? 0.0F : value);
  });
}

template <class T>
void mask(Device& device, T* slope, const T* value, std::int64_t count) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    if (!(number(value[i]) > 0)) slope[i] = T(0.0F);
  });
}

// One block a channel.
template <class T>
__global__ void bias_gradient(float* to, const T* slope, std::int64_t rows, std::int64_t channels) {
  __shared__ float room[256];
  float sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    sum += number(slope[row * channels + blockIdx.x]);
  room[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = room[0];
}

void widen(Device& device, float* to, const Bf16* from, std::int64_t count) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) { to[i] = number(from[i]); });
}

// The fastest that works, fits and repeats its bits.
template <class Performance>
Performance fastest(const std::vector<Performance>& tried, int count, const Device& device,
                    const std::string& what) {
  const cudnnMathType_t math = device.half() ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH;
  for (int i = 0; i < count; ++i)
    if (tried[static_cast<std::size_t>(i)].status == CUDNN_STATUS_SUCCESS &&
        tried[static_cast<std::size_t>(i)].determinism == CUDNN_DETERMINISTIC &&
        tried[static_cast<std::size_t>(i)].mathType == math && tried[static_cast<std::size_t>(i)].memory <= kWorkspace)
      return tried[static_cast<std::size_t>(i)];
  throw Failure("cuDNN has no algorithm for " + what);
}

class Convolution final : public Operator {
 public:
  Convolution(Device& device, const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {
    const cudnnDataType_t type = device.half() ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    const auto number = [](std::int64_t value) { return static_cast<int>(value); };
    name_ = "a convolution of " + std::to_string(node.in_channels) + "x" + std::to_string(node.in_height) + "x" +
            std::to_string(node.in_width) + " to " + std::to_string(node.channels) + " filters of " +
            std::to_string(node.window) + "x" + std::to_string(node.window);
    check(cudnnCreateTensorDescriptor(&x_), name_);
    check(cudnnCreateTensorDescriptor(&y_), name_);
    check(cudnnCreateFilterDescriptor(&w_), name_);
    check(cudnnCreateConvolutionDescriptor(&conv_), name_);
    check(cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NHWC, type, number(device.batch), number(node.in_channels),
                                     number(node.in_height), number(node.in_width)),
          name_);
    check(cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NHWC, type, number(device.batch), number(node.channels),
                                     number(node.height), number(node.width)),
          name_);
    check(cudnnSetFilter4dDescriptor(w_, type, CUDNN_TENSOR_NHWC, number(node.channels), number(node.in_channels),
                                     number(node.window), number(node.window)),
          name_);
    check(cudnnSetConvolution2dDescriptor(conv_, number(node.padding), number(node.padding), number(node.stride),
                                          number(node.stride), 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          name_);
    check(cudnnSetConvolutionMathType(conv_, device.half() ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH), name_);
    weights_ = node.channels * node.in_channels * node.window * node.window;
    slope_ = device.gradients + node.weight;
    if (device.half())
      slope_ = device.memory.device(static_cast<std::size_t>(weights_) * sizeof(Bf16), "a bf16 gradient");
    choose(device);
  }
  ~Convolution() override {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(conv_);
  }

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    check(cudnnConvolutionForward(device.dnn, &one_, x_, in.value, w_, device.weights(node_.weight), conv_,
                                  forward_, device.workspace, device.workspace_bytes, &zero_, y_, out.value),
          name_);
    if (node_.bias == DLRUN_CUDA_NOWHERE && node_.relu == 0) return;
    const float* bias = node_.bias == DLRUN_CUDA_NOWHERE ? nullptr : device.values + node_.bias;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      add_bias(device, static_cast<T*>(out.value), bias, out.elements, node_.channels, node_.relu != 0);
    });
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      T* slope = static_cast<T*>(out.gradient);
      if (node_.relu != 0) mask(device, slope, static_cast<const T*>(out.value), out.elements);
      if (node_.bias == DLRUN_CUDA_NOWHERE) return;
      bias_gradient<<<static_cast<unsigned>(node_.channels), 256, 0, device.stream>>>(
          device.gradients + node_.bias, slope, out.elements / node_.channels, node_.channels);
      check(cudaGetLastError(), "the gradient of a bias");
    });
    check(cudnnConvolutionBackwardFilter(device.dnn, &one_, x_, in.value, y_, out.gradient, conv_, weights_by_,
                                         device.workspace, device.workspace_bytes, &zero_, w_, slope_),
          name_);
    if (device.half())
      widen(device, device.gradients + node_.weight, static_cast<const Bf16*>(slope_), weights_);
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    check(cudnnConvolutionBackwardData(device.dnn, &one_, w_, device.weights(node_.weight), y_, out.gradient,
                                       conv_, data_by_, device.workspace, device.workspace_bytes,
                                       adds ? &one_ : &zero_, x_, in.gradient),
          name_);
  }

 private:
  // Times them on the plan's own buffers; what lies there is overwritten before it is read.
  void choose(Device& device) {
    Memory rooms;
    void* room = rooms.device(kWorkspace, "timing convolutions");
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const void* w = device.weights(node_.weight);
    int found = 0;
    std::vector<cudnnConvolutionFwdAlgoPerf_t> forwards(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
    check(cudnnFindConvolutionForwardAlgorithmEx(device.dnn, x_, in.value, w_, w, conv_, y_, out.value,
                                                 static_cast<int>(forwards.size()), &found, forwards.data(), room,
                                                 kWorkspace),
          name_);
    keep(device, fastest(forwards, found, device, name_), forward_);
    std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> filters(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
    check(cudnnFindConvolutionBackwardFilterAlgorithmEx(device.dnn, x_, in.value, y_, out.gradient, conv_, w_,
                                                        slope_, static_cast<int>(filters.size()), &found,
                                                        filters.data(), room, kWorkspace),
          name_);
    keep(device, fastest(filters, found, device, "the weights of " + name_), weights_by_);
    if (in.gradient == nullptr) return;
    std::vector<cudnnConvolutionBwdDataAlgoPerf_t> choices(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
    check(cudnnFindConvolutionBackwardDataAlgorithmEx(device.dnn, w_, w, y_, out.gradient, conv_, x_, in.gradient,
                                                      static_cast<int>(choices.size()), &found, choices.data(), room,
                                                      kWorkspace),
          name_);
    keep(device, fastest(choices, found, device, "the data of " + name_), data_by_);
  }

  template <class Performance, class Algorithm>
  void keep(Device& device, const Performance& best, Algorithm& algorithm) {
    algorithm = best.algo;
    if (best.memory > device.workspace_bytes) device.workspace_bytes = best.memory;
  }

  DlrunCudaNode node_;
  std::size_t out_;
  std::string name_;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdFilterAlgo_t weights_by_{};
  cudnnConvolutionBwdDataAlgo_t data_by_{};
  std::int64_t weights_ = 0;
  void* slope_ = nullptr;  // of the weights, in the plan's type
  const float one_ = 1, zero_ = 0;
};

}  // namespace

Made make_convolution(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Convolution>(device, node, index);
}

}  // namespace dlrun::cuda
