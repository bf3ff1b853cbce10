// What batch norm keeps of its channels: the shape of its launches, sums over all rows in two stages, and
// what follows from them. Shared by batch norm alone and with the pooling behind it.
#pragma once

#include "runtime/cuda/plugin/batch_norm_kernels.hpp"

namespace dlrun::cuda::norm {

class Sums {
 public:
  Sums(Device& device, const DlrunCudaNode& node, std::int64_t rows) : node_(node), rows_(rows) {
    vector_ = node.channels % 8 != 0 ? 1 : device.half() ? 8 : 4;
    const std::int64_t groups = node.channels / vector_;
    width_ = 1;
    while (width_ < 32 && width_ < groups) width_ *= 2;
    height_ = kThreads / width_;
    columns_ = static_cast<unsigned>((groups + width_ - 1) / width_);
    int processors = 0, number = 0;
    check(cudaGetDevice(&number), "asking for the GPU");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, number),
          "asking for the GPU's size");
    const std::int64_t most = (rows_ + height_ - 1) / height_;
    const auto splits = [&](std::int64_t blocks_each) {
      const std::int64_t wanted = (blocks_each * processors + columns_ - 1) / columns_;
      return static_cast<unsigned>(most < wanted ? most : wanted);
    };
    forward_splits_ = splits(kForward), backward_splits_ = splits(kBackward);
    const auto channels = static_cast<std::size_t>(node.channels);
    mean_ = static_cast<float*>(device.memory.device(
        (5 + 2 * std::size_t{forward_splits_}) * channels * sizeof(float), "batch norm"));
    inverse_ = mean_ + channels, scale_ = inverse_ + channels, constant_ = scale_ + channels;
    linear_ = constant_ + channels, partial_ = linear_ + channels;
  }

  std::int64_t vector() const { return vector_; }  // channels that a thread has
  Affine affine(const Device& device) const { return {mean_, scale_, device.values + node_.bias}; }
  GradientFactors grads() const { return {constant_, linear_}; }
  Walk walk() const { return {rows_, node_.channels / vector_}; }
  dim3 block() const { return {width_, height_, 1}; }
  dim3 there() const { return {columns_, forward_splits_, 1}; }
  dim3 back() const { return {columns_, backward_splits_, 1}; }
  float* partial() const { return partial_; }

  // body(zero of the plan's type, a pack's size as a type).
  template <class Body>
  void by_vector(const Device& device, const Body& body) const {
    by_type(device, [&](auto zero) {
      if (vector_ > 1)
        body(zero, std::integral_constant<int, 16 / sizeof(zero)>{});
      else
        body(zero, std::integral_constant<int, 1>{});
    });
  }

  template <class T, int V>
  void measure(Device& device, const T* x) {
    norm::measure<T, V><<<there(), block(), 0, device.stream>>>(x, walk(), partial_);
    float *mean_at = mean_, *inverse_at = inverse_, *scale_at = scale_;
    float* running_mean = device.statistics + node_.running_mean;
    float* running_variance = device.statistics + node_.running_variance;
    const float* weight = device.values + node_.weight;
    const double rows = static_cast<double>(rows_);
    const auto settings = settings_of<op::BatchNorm>(node_);
    const float momentum = settings.momentum, epsilon = settings.epsilon;
    const bool moves = node_.learning != DLRUN_CUDA_FROZEN;
    const std::int32_t* const stay = device.stay;
    finish(device, forward_splits_, [=] __device__(std::int64_t channel, double sum, double squares) {
      const double mean = sum / rows, spread = squares / rows - mean * mean;
      const double variance = spread > 0 ? spread : 0;
      const auto inverse = static_cast<float>(1.0 / sqrt(variance + epsilon));
      mean_at[channel] = static_cast<float>(mean);
      inverse_at[channel] = inverse;
      scale_at[channel] = inverse * weight[channel];
      if (!moves || (stay != nullptr && *stay != 0)) return;
      const auto unbiased = static_cast<float>(rows > 1 ? variance * rows / (rows - 1) : variance);
      running_mean[channel] += momentum * (static_cast<float>(mean) - running_mean[channel]);
      running_variance[channel] += momentum * (unbiased - running_variance[channel]);
    });
  }

  void take_running(Device& device) {
    float *mean = mean_, *scale = scale_;
    const float* running_mean = device.statistics + node_.running_mean;
    const float* running_variance = device.statistics + node_.running_variance;
    const float* weight = device.values + node_.weight;
    const float epsilon = settings_of<op::BatchNorm>(node_).epsilon;
    for_each(device.stream, node_.channels, [=] __device__(std::int64_t channel) {
      mean[channel] = running_mean[channel];
      scale[channel] = weight[channel] / sqrtf(running_variance[channel] + epsilon);
    });
  }

  // The gradients of scale and shift, where they learn, and what the map after them needs.
  void finish_gradients(Device& device) {
    float* of_weight = device.gradients + node_.weight;
    float* of_bias = device.gradients + node_.bias;
    float *constant = constant_, *linear = linear_;
    const float *inverse = inverse_, *scale = scale_;
    const double rows = static_cast<double>(rows_);
    const DlrunCudaLearning learning = node_.learning;
    finish(device, backward_splits_, [=] __device__(std::int64_t channel, double grads, double products) {
      const double normal = products * inverse[channel];
      const bool adds = learning == DLRUN_CUDA_GRAD_ACCUMULATE;
      if (learning != DLRUN_CUDA_FROZEN) {
        of_bias[channel] = (adds ? of_bias[channel] : 0.0F) + static_cast<float>(grads);
        of_weight[channel] = (adds ? of_weight[channel] : 0.0F) + static_cast<float>(normal);
      }
      constant[channel] = static_cast<float>(scale[channel] * grads / rows);
      linear[channel] = static_cast<float>(scale[channel] * inverse[channel] * normal / rows);
    });
  }

 private:
  template <class Finish>
  void finish(Device& device, unsigned splits, Finish what) {
    const unsigned threads = splits > 64 ? 32 * kMaxWarps : 32;
    launch_early(device.stream, dim3(static_cast<unsigned>(node_.channels)), dim3(threads),
                 finish_kernel<Finish>, partial_, static_cast<int>(splits), node_.channels, what);
    check(cudaGetLastError(), "batch norm");
  }

  DlrunCudaNode node_;
  std::int64_t rows_, vector_ = 1;
  unsigned width_ = 1, height_ = 1, columns_ = 1, forward_splits_ = 1, backward_splits_ = 1;
  float *mean_ = nullptr, *inverse_ = nullptr, *scale_ = nullptr, *constant_ = nullptr, *linear_ = nullptr,
        *partial_ = nullptr;
};

}  // namespace dlrun::cuda::norm
