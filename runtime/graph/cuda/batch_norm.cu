// Batch norm and the ReLU after it: sums in two stages (blocks over rows, then one warp a channel, in double)
// and one pass to apply, forward and backward. Eight channels a thread where they divide so. No atomics: the
// same bits in every run.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

template <class T, int V>
struct alignas(sizeof(T) * V > 16 ? 16 : sizeof(T) * V) Pack {
  T of[V];
};

struct Norm {
  const float *mean, *inverse, *weight, *bias;
  std::int64_t channels, rows;
  bool relu;
};

// First stage: partial[split][0/1][channel] of (x, x^2), or of (dy, dy x-hat) where BACKWARD.
template <class T, int V, bool BACKWARD>
__global__ void sums(const T* x, const T* slope, Norm n, float* partial) {
  const std::int64_t groups = n.channels / V;
  const std::int64_t group = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  float first[V] = {}, second[V] = {}, mean[V], inverse[V], weight[V], bias[V];
  if (group < groups) {
    if constexpr (BACKWARD)
      for (int v = 0; v < V; ++v) {
        mean[v] = n.mean[group * V + v], inverse[v] = n.inverse[group * V + v];
        weight[v] = n.weight[group * V + v], bias[v] = n.bias[group * V + v];
      }
    const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y;
#pragma unroll 4
    for (std::int64_t row = blockIdx.y * static_cast<std::int64_t>(blockDim.y) + threadIdx.y; row < n.rows;
         row += step) {
      const auto xs = reinterpret_cast<const Pack<T, V>*>(x)[row * groups + group];
      if constexpr (BACKWARD) {
        const auto slopes = reinterpret_cast<const Pack<T, V>*>(slope)[row * groups + group];
        for (int v = 0; v < V; ++v) {
          const float normal = (number(xs.of[v]) - mean[v]) * inverse[v];
          const float dy = n.relu && !(normal * weight[v] + bias[v] > 0) ? 0.0F : number(slopes.of[v]);
          first[v] += dy;
          second[v] += dy * normal;
        }
      } else {
        for (int v = 0; v < V; ++v) {
          const float value = number(xs.of[v]);
          first[v] += value;
          second[v] += value * value;
        }
      }
    }
  }
  __shared__ float room[256];
  const int lane = threadIdx.y * blockDim.x + threadIdx.x;
  for (int v = 0; v < V; ++v)
    for (int which = 0; which < 2; ++which) {
      room[lane] = which == 0 ? first[v] : second[v];
      __syncthreads();
      if (threadIdx.y == 0 && group < groups) {
        float sum = 0;
        for (unsigned y = 0; y < blockDim.y; ++y) sum += room[y * blockDim.x + threadIdx.x];
        partial[(static_cast<std::int64_t>(blockIdx.y) * 2 + which) * n.channels + group * V + v] = sum;
      }
      __syncthreads();
    }
}

// Second stage: one warp a channel; finish(channel, first, second).
template <class Finish>
__global__ void finish_kernel(const float* partial, int splits, std::int64_t channels, Finish finish) {
  const std::int64_t channel = (blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x) / 32;
  if (channel >= channels) return;
  const int lane = threadIdx.x % 32;
  double first = 0, second = 0;
  for (int split = lane; split < splits; split += 32) {
    first += partial[(static_cast<std::int64_t>(split) * 2) * channels + channel];
    second += partial[(static_cast<std::int64_t>(split) * 2 + 1) * channels + channel];
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    first += __shfl_down_sync(0xffffffffU, first, offset);
    second += __shfl_down_sync(0xffffffffU, second, offset);
  }
  if (lane == 0) finish(channel, first, second);
}

template <class T, int V>
void apply_forward(Device& device, T* to, const T* from, Norm n) {
  const std::int64_t groups = n.channels / V;
  for_each(device.stream, n.rows * groups, [=] __device__(std::int64_t i) {
    const std::int64_t at = i % groups * V;
    Pack<T, V> pack = reinterpret_cast<const Pack<T, V>*>(from)[i];
    for (int v = 0; v < V; ++v) {
      const float normal = (number(pack.of[v]) - n.mean[at + v]) * n.inverse[at + v];
      const float value = normal * n.weight[at + v] + n.bias[at + v];
      put(pack.of[v], n.relu && value < 0 ? 0.0F : value);
    }
    reinterpret_cast<Pack<T, V>*>(to)[i] = pack;
  });
}

template <class T, int V>
void apply_backward(Device& device, T* to, const T* from, const T* slope, Norm n, const float* of_weight,
                    const float* of_bias, bool adds) {
  const std::int64_t groups = n.channels / V;
  const float share = 1.0F / static_cast<float>(n.rows);
  for_each(device.stream, n.rows * groups, [=] __device__(std::int64_t i) {
    const std::int64_t at = i % groups * V;
    const auto xs = reinterpret_cast<const Pack<T, V>*>(from)[i];
    const auto slopes = reinterpret_cast<const Pack<T, V>*>(slope)[i];
    Pack<T, V> out{};
    if (adds) out = reinterpret_cast<const Pack<T, V>*>(to)[i];
    for (int v = 0; v < V; ++v) {
      const float inverse = n.inverse[at + v], weight = n.weight[at + v];
      const float normal = (number(xs.of[v]) - n.mean[at + v]) * inverse;
      const float dy = n.relu && !(normal * weight + n.bias[at + v] > 0) ? 0.0F : number(slopes.of[v]);
      const float dx = weight * inverse * (dy - share * (of_bias[at + v] + normal * of_weight[at + v]));
      put(out.of[v], (adds ? number(out.of[v]) : 0.0F) + dx);
    }
    reinterpret_cast<Pack<T, V>*>(to)[i] = out;
  });
}

class BatchNorm final : public Operator {
 public:
  BatchNorm(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), rows_(device.batch * node.height * node.width) {
    const std::int64_t vector = node.channels % 8 == 0 ? 8 : 1, groups = node.channels / vector;
    width_ = static_cast<unsigned>(groups < 32 ? groups : 32);
    height_ = 256 / width_;
    columns_ = static_cast<unsigned>((groups + width_ - 1) / width_);
    const std::int64_t most = (rows_ + height_ - 1) / height_, wanted = 1056 / columns_ + 1;
    splits_ = static_cast<unsigned>(most < wanted ? most : wanted);
    const auto channels = static_cast<std::size_t>(node.channels);
    mean_ = static_cast<float*>(
        device.memory.device((2 + 2 * std::size_t{splits_}) * channels * sizeof(float), "batch norm"));
    inverse_ = mean_ + channels;
    partial_ = inverse_ + channels;
  }

  void forward(Device& device, Mode mode) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      if (node_.channels % 8 == 0)
        forward_as<T, 8>(device, mode);
      else
        forward_as<T, 1>(device, mode);
    });
  }
  void backward(Device& device) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      if (node_.channels % 8 == 0)
        backward_as<T, 8>(device);
      else
        backward_as<T, 1>(device);
    });
  }

 private:
  Norm norm(const Device& device) const {
    return {mean_,           inverse_, device.values + node_.weight, device.values + node_.bias,
            node_.channels, rows_,    node_.relu != 0};
  }

  template <class Finish>
  void finish(Device& device, Finish what) {
    finish_kernel<<<blocks(node_.channels * 32), 256, 0, device.stream>>>(partial_, static_cast<int>(splits_),
                                                                         node_.channels, what);
    check(cudaGetLastError(), "batch norm");
  }

  template <class T, int V>
  void forward_as(Device& device, Mode mode) {
    const T* x = static_cast<const T*>(device.tensors[node_.inputs[0]].value);
    if (mode == Mode::train)
      measure<T, V>(device, x);
    else
      take_running(device);
    apply_forward<T, V>(device, static_cast<T*>(device.tensors[out_].value), x, norm(device));
  }

 public:  // extended lambdas must not stand in private members
  template <class T, int V>
  void measure(Device& device, const T* x) {
    sums<T, V, false><<<dim3(columns_, splits_), dim3(width_, height_), 0, device.stream>>>(
        x, nullptr, norm(device), partial_);
    float *mean_at = mean_, *inverse_at = inverse_;
    float* running_mean = device.statistics + node_.running_mean;
    float* running_variance = device.statistics + node_.running_variance;
    const double rows = static_cast<double>(rows_);
    const float share = node_.share, epsilon = node_.epsilon;
    finish(device, [=] __device__(std::int64_t channel, double sum, double squares) {
      const double mean = sum / rows, spread = squares / rows - mean * mean;
      const double variance = spread > 0 ? spread : 0;
      mean_at[channel] = static_cast<float>(mean);
      inverse_at[channel] = static_cast<float>(1.0 / sqrt(variance + epsilon));
      const auto unbiased = static_cast<float>(rows > 1 ? variance * rows / (rows - 1) : variance);
      running_mean[channel] += share * (static_cast<float>(mean) - running_mean[channel]);
      running_variance[channel] += share * (unbiased - running_variance[channel]);
    });
  }

  void take_running(Device& device) {
    float *mean = mean_, *inverse = inverse_;
    const float* running_mean = device.statistics + node_.running_mean;
    const float* running_variance = device.statistics + node_.running_variance;
    const float epsilon = node_.epsilon;
    for_each(device.stream, node_.channels, [=] __device__(std::int64_t channel) {
      mean[channel] = running_mean[channel];
      inverse[channel] = 1.0F / sqrtf(running_variance[channel] + epsilon);
    });
  }

  template <class T, int V>
  void backward_as(Device& device) {
    Tensor& in = device.tensors[node_.inputs[0]];
    const T* x = static_cast<const T*>(in.value);
    const T* slope = static_cast<const T*>(device.tensors[out_].gradient);
    sums<T, V, true><<<dim3(columns_, splits_), dim3(width_, height_), 0, device.stream>>>(
        x, slope, norm(device), partial_);
    float* of_weight = device.gradients + node_.weight;
    float* of_bias = device.gradients + node_.bias;
    finish(device, [=] __device__(std::int64_t channel, double slopes, double products) {
      of_bias[channel] = static_cast<float>(slopes);
      of_weight[channel] = static_cast<float>(products);
    });
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    apply_backward<T, V>(device, static_cast<T*>(in.gradient), x, slope, norm(device), of_weight, of_bias, adds);
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
  std::int64_t rows_;
  unsigned width_ = 1, height_ = 1, columns_ = 1, splits_ = 1;
  float *mean_ = nullptr, *inverse_ = nullptr, *partial_ = nullptr;
};

}  // namespace

Made make_batch_norm(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<BatchNorm>(device, node, index);
}

}  // namespace dlrun::cuda
