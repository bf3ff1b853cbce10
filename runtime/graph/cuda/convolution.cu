// Convolution, and fully connected as its 1x1 case: the passes of passes.hpp, and bias and ReLU in kernels of
// our own.
#include "runtime/graph/cuda/passes.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void add_bias(Device& device, T* to, const float* bias, std::int64_t count, std::int64_t channels,
              bool relu) {
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

void widen(cudaStream_t stream, float* to, const Bf16* from, std::int64_t count) {
  for_each(stream, count, [=] __device__(std::int64_t i) { to[i] = number(from[i]); });
}

Geometry geometry_of(const DlrunCudaNode& node) {
  return {node.in_channels, node.in_height, node.in_width, node.channels, node.height,
          node.width,       node.window,    node.window,   node.stride,   node.padding};
}

class Convolution final : public Operator {
 public:
  Convolution(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        weights_(node.channels * node.in_channels * node.window * node.window),
        slope_(slopes_of(device)),
        passes_(device, geometry_of(node), arrays(device)) {}

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    passes_.forward(device, in.value, device.weights(node_.weight), out.value);
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
    join_side(device);
    fork_side(device);
    passes_.weights(device.side, in.value, out.gradient, slope_);
    if (device.half())
      widen(device.side.stream, device.gradients + node_.weight, static_cast<const Bf16*>(slope_), weights_);
    if (in.gradient == nullptr) return;
    passes_.data(device, device.weights(node_.weight), out.gradient, in.gradient,
                 claim(in) ? Passes::Into::sum : Passes::Into::fresh);
  }

 private:
  void* slopes_of(Device& device) const {
    if (!device.half()) return device.gradients + node_.weight;
    return device.memory.device(static_cast<std::size_t>(weights_) * sizeof(Bf16), "gradients of weights");
  }
  Passes::Arrays arrays(const Device& device) const {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    return {in.value, device.weights(node_.weight), out.value, out.gradient, slope_, in.gradient};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  std::int64_t weights_;
  void* slope_;  // of the weights, in the plan's type
  Passes passes_;
};

}  // namespace

Made make_convolution(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Convolution>(device, node, index);
}

}  // namespace dlrun::cuda
