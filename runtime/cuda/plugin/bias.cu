// See bias.hpp. Eight channels a thread where they divide so; a bias's gradient is a sum in a fixed order.
#include "runtime/cuda/plugin/activation.hpp"
#include "runtime/cuda/plugin/bias.hpp"
#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda {
namespace {

template <class T, int V, class Function>
void add(Device& device, Pack<T, V>* to, const float* bias, std::int64_t packs, unsigned groups,
         Function function) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    Pack<T, V> all = to[i];
    const unsigned first = bias == nullptr ? 0 : static_cast<unsigned>(i % groups) * V;
    for (int v = 0; v < V; ++v)
      put(all.of[v], function.of(number(all.of[v]) + (bias == nullptr ? 0.0F : bias[first + v])));
    to[i] = all;
  });
}

template <class T, class Function>
void pass_back(Device& device, T* grad, const T* value, std::int64_t count, Function function) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    put(grad[i], function.back(number(grad[i]), number(value[i])));
  });
}

// A block has 32 channels and its share of the rows: neighbouring threads read neighbouring channels.
template <class T>
__global__ void sum_rows(float* partial, const T* grad, std::int64_t rows, std::int64_t channels) {
  __shared__ float room[8][32];
  const std::int64_t channel = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  if (channel < channels)
    for (std::int64_t row = blockIdx.y * 8 + threadIdx.y; row < rows; row += gridDim.y * 8)
      sum += number(grad[row * channels + channel]);
  room[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (int y = 1; y < 8; ++y) sum += room[y][threadIdx.x];
  partial[blockIdx.y * channels + channel] = sum;
}

void sum_parts(Device& device, float* to, const float* partial, unsigned splits, std::int64_t channels,
               bool adds) {
  for_each(device.stream, channels, [=] __device__(std::int64_t channel) {
    float sum = 0;
    for (unsigned split = 0; split < splits; ++split) sum += partial[split * channels + channel];
    to[channel] = (adds ? to[channel] : 0.0F) + sum;
  });
}

template <class T>
void bias_gradient(Device& device, float* to, const T* grad, std::int64_t rows, std::int64_t channels,
                   bool adds) {
  const std::int64_t wanted = (rows + 63) / 64;
  const auto splits = static_cast<unsigned>(wanted < kBiasSplits ? wanted : kBiasSplits);
  const dim3 grid(static_cast<unsigned>((channels + 31) / 32), splits);
  sum_rows<<<grid, dim3(32, 8), 0, device.stream>>>(device.partial, grad, rows, channels);
  check(cudaGetLastError(), "the gradient of a bias");
  sum_parts(device, to, device.partial, splits, channels, adds);
}

}  // namespace

void add_bias(Device& device, const DlrunCudaNode& node, const Tensor& out) {
  const bool adds = node.bias != DLRUN_CUDA_NOWHERE && (node.facts & DLRUN_CUDA_LEAVES_TERMS) == 0;
  if (!adds && node.activation == DLRUN_CUDA_NO_ACTIVATION) return;
  const float* bias = adds ? device.values + node.bias : nullptr;
  by_type(device, [&](auto zero) {
    by_pack<decltype(zero)>(node.channels, [&](auto pack) {
      using P = decltype(pack);
      by_activation(node, [&](auto function) {
        add(device, static_cast<P*>(out.value), bias, out.elements / P::kSize,
            static_cast<unsigned>(node.channels / P::kSize), function);
      });
    });
  });
}

void bias_backward(Device& device, const DlrunCudaNode& node, const Tensor& out) {
  by_type(device, [&](auto zero) {
    using T = decltype(zero);
    T* grad = static_cast<T*>(out.gradient);
    if (node.activation != DLRUN_CUDA_NO_ACTIVATION)
      by_activation(node, [&](auto function) {
        pass_back(device, grad, static_cast<const T*>(out.value), out.elements, function);
      });
    if (node.bias == DLRUN_CUDA_NOWHERE || node.learning == DLRUN_CUDA_FROZEN) return;
    bias_gradient(device, device.gradients + node.bias, grad, out.elements / node.channels, node.channels,
                  node.learning == DLRUN_CUDA_GRAD_ACCUMULATE);
  });
}

void widen(cudaStream_t stream, float* to, const void* bf16, std::int64_t count, bool adds) {
  const Bf16* from = static_cast<const Bf16*>(bf16);
  for_each(stream, count,
           [=] __device__(std::int64_t i) { to[i] = (adds ? to[i] : 0.0F) + number(from[i]); });
}

}  // namespace dlrun::cuda
