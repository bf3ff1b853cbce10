// Batch norm with what follows it in the same passes: a ReLU, or the sum with another value (inputs[1]) and
// the ReLU behind that. Forward reads the input twice, backward reads input and gradient twice.
#include "runtime/graph/cuda/batch_norm_kernels.hpp"
#include "runtime/graph/cuda/pointwise.hpp"

namespace dlrun::cuda {
namespace {

using norm::After;

class BatchNorm final : public Operator {
 public:
  BatchNorm(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), rows_(device.batch * node.height * node.width) {
    vector_ = node.channels % 8 != 0 ? 1 : device.half() ? 8 : 4;
    const std::int64_t groups = node.channels / vector_;
    width_ = 1;
    while (width_ < 32 && width_ < groups) width_ *= 2;
    height_ = norm::kThreads / width_;
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
    forward_splits_ = splits(norm::kForward), backward_splits_ = splits(norm::kBackward);
    const auto channels = static_cast<std::size_t>(node.channels);
    mean_ = static_cast<float*>(device.memory.device(
        (5 + 2 * std::size_t{forward_splits_}) * channels * sizeof(float), "batch norm"));
    inverse_ = mean_ + channels, scale_ = inverse_ + channels, constant_ = scale_ + channels;
    linear_ = constant_ + channels, partial_ = linear_ + channels;
    if (after() == After::add_relu)
      passes_ = static_cast<std::uint8_t*>(device.memory.device(
          static_cast<std::size_t>(device.tensors[index].elements / vector_), "what ReLUs let pass"));
  }

  void forward(Device& device, Mode mode) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      if (vector_ > 1)
        forward_as<T, 16 / sizeof(T)>(device, mode);
      else
        forward_as<T, 1>(device, mode);
    });
  }
  void backward(Device& device) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      if (vector_ > 1)
        backward_as<T, 16 / sizeof(T)>(device);
      else
        backward_as<T, 1>(device);
    });
  }

 private:
  After after() const {
    if (node_.input_count == 2) return node_.relu != 0 ? After::add_relu : After::add;
    return node_.relu != 0 ? After::relu : After::nothing;
  }
  template <After AFTER>
  using Is = std::integral_constant<After, AFTER>;
  template <class Body>
  void by_after(const Body& body) const {
    switch (after()) {
      case After::nothing:
        return body(Is<After::nothing>{});
      case After::relu:
        return body(Is<After::relu>{});
      case After::add:
        return body(Is<After::add>{});
      case After::add_relu:
        return body(Is<After::add_relu>{});
    }
  }
  norm::Affine affine(const Device& device) const { return {mean_, scale_, device.values + node_.bias}; }
  norm::Walk walk() const { return {rows_, node_.channels / vector_}; }
  dim3 block() const { return {width_, height_, 1}; }
  dim3 there() const { return {columns_, forward_splits_, 1}; }
  dim3 back() const { return {columns_, backward_splits_, 1}; }

  template <class Finish>
  void finish(Device& device, unsigned splits, Finish what) {
    const unsigned threads = splits > 64 ? 32 * norm::kMostWarps : 32;
    launch_early(device.stream, dim3(static_cast<unsigned>(node_.channels)), dim3(threads),
                 norm::finish_kernel<Finish>, partial_, static_cast<int>(splits), node_.channels, what);
    check(cudaGetLastError(), "batch norm");
  }

  template <class T, int V>
  void forward_as(Device& device, Mode mode) {
    const T* x = static_cast<const T*>(device.tensors[node_.inputs[0]].value);
    T* to = static_cast<T*>(device.tensors[out_].value);
    const T* skip =
        node_.input_count == 2 ? static_cast<const T*>(device.tensors[node_.inputs[1]].value) : nullptr;
    if (mode == Mode::train)
      measure<T, V>(device, x);
    else
      take_running(device);
    by_after([&](auto is) {
      launch_early(device.stream, there(), block(), norm::apply<T, V, decltype(is)::value>, to, x, skip,
                   passes_, affine(device), walk());
    });
    check(cudaGetLastError(), "batch norm");
  }

 public:  // extended lambdas must not stand in private members
  template <class T, int V>
  void measure(Device& device, const T* x) {
    norm::measure<T, V><<<there(), block(), 0, device.stream>>>(x, walk(), partial_);
    float *mean_at = mean_, *inverse_at = inverse_, *scale_at = scale_;
    float* running_mean = device.statistics + node_.running_mean;
    float* running_variance = device.statistics + node_.running_variance;
    const float* weight = device.values + node_.weight;
    const double rows = static_cast<double>(rows_);
    const float share = node_.share, epsilon = node_.epsilon;
    finish(device, forward_splits_, [=] __device__(std::int64_t channel, double sum, double squares) {
      const double mean = sum / rows, spread = squares / rows - mean * mean;
      const double variance = spread > 0 ? spread : 0;
      const auto inverse = static_cast<float>(1.0 / sqrt(variance + epsilon));
      mean_at[channel] = static_cast<float>(mean);
      inverse_at[channel] = inverse;
      scale_at[channel] = inverse * weight[channel];
      const auto unbiased = static_cast<float>(rows > 1 ? variance * rows / (rows - 1) : variance);
      running_mean[channel] += share * (static_cast<float>(mean) - running_mean[channel]);
      running_variance[channel] += share * (unbiased - running_variance[channel]);
    });
  }

  void take_running(Device& device) {
    float *mean = mean_, *scale = scale_;
    const float* running_mean = device.statistics + node_.running_mean;
    const float* running_variance = device.statistics + node_.running_variance;
    const float* weight = device.values + node_.weight;
    const float epsilon = node_.epsilon;
    for_each(device.stream, node_.channels, [=] __device__(std::int64_t channel) {
      mean[channel] = running_mean[channel];
      scale[channel] = weight[channel] / sqrtf(running_variance[channel] + epsilon);
    });
  }

  // The gradients of scale and shift, and what the map after them needs.
  void finish_slopes(Device& device) {
    float* of_weight = device.gradients + node_.weight;
    float* of_bias = device.gradients + node_.bias;
    float *constant = constant_, *linear = linear_;
    const float *inverse = inverse_, *scale = scale_;
    const double rows = static_cast<double>(rows_);
    finish(device, backward_splits_, [=] __device__(std::int64_t channel, double slopes, double products) {
      const double normal = products * inverse[channel];
      of_bias[channel] = static_cast<float>(slopes);
      of_weight[channel] = static_cast<float>(normal);
      constant[channel] = static_cast<float>(scale[channel] * slopes / rows);
      linear[channel] = static_cast<float>(scale[channel] * inverse[channel] * normal / rows);
    });
  }

 private:
  template <class T, int V>
  void backward_as(Device& device) {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const T* x = static_cast<const T*>(in.value);
    T* slope = static_cast<T*>(out.gradient);
    T* passed = slope;
    bool adds_later = false;
    if (node_.input_count == 2)
      if (Tensor& skip = device.tensors[node_.inputs[1]]; skip.gradient != nullptr) {
        adds_later = claim(skip);
        if (!adds_later) passed = static_cast<T*>(skip.gradient);
      }
    by_after([&](auto is) {
      norm::measure_slopes<T, V, decltype(is)::value><<<back(), block(), 0, device.stream>>>(
          x, slope, passes_, passed, affine(device), walk(), partial_);
    });
    finish_slopes(device);
    if (adds_later) {
      T* to = static_cast<T*>(device.tensors[node_.inputs[1]].gradient);
      pass_gradient(device, to, passed, static_cast<const T*>(nullptr), out.elements, true);
    }
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_after([&](auto is) {
      map_slopes<T, V, decltype(is)::value>(device, static_cast<T*>(in.gradient), x, passed, adds);
    });
    check(cudaGetLastError(), "batch norm");
  }

  // Behind a sum the ReLU was seen to already.
  template <class T, int V, After AFTER>
  void map_slopes(Device& device, T* to, const T* x, const T* slope, bool adds) {
    constexpr After kLeft = AFTER == After::relu ? After::relu : After::nothing;
    const norm::Slopes by{constant_, linear_};
    if (adds)
      launch_early(device.stream, back(), block(), norm::apply_slopes<T, V, kLeft, true>, to, x, slope,
                   affine(device), by, walk());
    else
      launch_early(device.stream, back(), block(), norm::apply_slopes<T, V, kLeft, false>, to, x, slope,
                   affine(device), by, walk());
  }

  DlrunCudaNode node_;
  std::size_t out_;
  std::int64_t rows_, vector_ = 1;
  unsigned width_ = 1, height_ = 1, columns_ = 1, forward_splits_ = 1, backward_splits_ = 1;
  float *mean_ = nullptr, *inverse_ = nullptr, *scale_ = nullptr, *constant_ = nullptr, *linear_ = nullptr,
        *partial_ = nullptr;
  std::uint8_t* passes_ = nullptr;
};

}  // namespace

Made make_batch_norm(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<BatchNorm>(device, node, index);
}

}  // namespace dlrun::cuda
