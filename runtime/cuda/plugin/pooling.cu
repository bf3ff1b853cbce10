// Maximum and average pooling over images and volumes, eight channels a thread where they divide so. Backward
// gathers, so that the sums have one order: the same bits in every run.
#include "runtime/cuda/plugin/activation.hpp"
#include "runtime/cuda/plugin/bias.hpp"
#include "runtime/cuda/plugin/pool_indices.hpp"

namespace dlrun::cuda {
namespace {

// What is done with a number before it is compared.
struct AsItIs {
  __device__ float of(float number, int) const { return number; }
};
template <class Function>
struct Activated {
  const float* bias;
  Function function;
  __device__ float of(float number, int channel) const {
    return function.of(number + (bias == nullptr ? 0.0F : bias[channel]));
  }
};

// Numbers are compared as they would be if they were written.
template <class T, int V, class S, class Before>
void highest(Device& device, Pack<T, V>* to, Pack<std::uint8_t, V>* argmax, const Pack<T, V>* from, S s,
             bool relu, Before before) {
  for_each(device.stream, s.packs_out(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    const auto window = place_out(s, i);
    Maxima<V> maxima;
    for_pixels(s, window, [&](int pack, int pixel) {
      const Pack<T, V> seen = from[pack];
      for (int k = 0; k < V; ++k) {
        T rounded;
        put(rounded, before.of(number(seen.of[k]), window.group * V + k));
        maxima.see(k, number(rounded), pixel);
      }
    });
    to[i] = maxima.template values<T>(relu);
    argmax[i] = maxima.pixel;
  });
}

template <class T, int V, class S>
void gather(Device& device, Pack<T, V>* to, const Pack<T, V>* grad, const Pack<std::uint8_t, V>* argmax, S s,
            bool adds) {
  for_each(device.stream, s.packs_in(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    float sum[V] = {};
    if (adds)
      for (int k = 0; k < V; ++k) sum[k] = number(to[i].of[k]);
    gather_by_argmax(s, place_in(s, i), grad, argmax, sum);
    Pack<T, V> out;
    for (int k = 0; k < V; ++k) put(out.of[k], sum[k]);
    to[i] = out;
  });
}

// The same where every pixel is in one window: a window is read once, by the thread that fills it.
template <class T, int V, class S>
void fill_windows(Device& device, Pack<T, V>* to, const Pack<T, V>* grad, const Pack<std::uint8_t, V>* argmax,
                  S s) {
  for_each(device.stream, s.packs_out(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    const Pack<T, V> dy = grad[i];
    const Pack<std::uint8_t, V> index = argmax[i];
    for_pixels(s, place_out(s, i), [&](int pack, int pixel) {
      Pack<T, V> out;
      for (int k = 0; k < V; ++k) put(out.of[k], index.of[k] == pixel ? number(dy.of[k]) : 0.0F);
      to[pack] = out;
    });
  });
}

class MaxPool final : public Operator {
 public:
  MaxPool(Device& device, const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {
    vector_ = node.channels % 8 == 0 ? 8 : 1;
    check_pooling(device, node, vector_);
    argmax_ = static_cast<std::uint8_t*>(
        device.memory.device(static_cast<std::size_t>(device.tensors[index].elements), "pooling"));
  }
  void forward(Device& device, Mode) override {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      vector_ == 8 ? forward_as<T, 8>(device) : forward_as<T, 1>(device);
    });
  }
  void backward(Device& device) override {
    if (activates()) bias_backward(device, node_, device.tensors[out_]);
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      vector_ == 8 ? backward_as<T, 8>(device, adds) : backward_as<T, 1>(device, adds);
    });
  }

 private:
  // Whether it has the bias and the activation of the convolution before it. A ReLU alone needs no look at
  // the value: what it stops has no index.
  bool activates() const {
    return node_.bias != DLRUN_CUDA_NOWHERE ||
           (node_.activation != DLRUN_CUDA_NO_ACTIVATION && !rectifies(node_));
  }
  template <class T, int V>
  void forward_as(Device& device) const {
    if (!activates()) return forward_of<T, V>(device, rectifies(node_), AsItIs{});
    const float* bias = node_.bias == DLRUN_CUDA_NOWHERE ? nullptr : device.values + node_.bias;
    by_activation(node_, [&](auto function) {
      forward_of<T, V>(device, false, Activated<decltype(function)>{bias, function});
    });
  }
  template <class T, int V, class Before>
  void forward_of(Device& device, bool relu, Before before) const {
    by_sizes(node_, V, [&](const auto& sizes) {
      highest(device, static_cast<Pack<T, V>*>(device.tensors[out_].value),
              reinterpret_cast<Pack<std::uint8_t, V>*>(argmax_),
              static_cast<const Pack<T, V>*>(device.tensors[node_.inputs[0]].value), sizes, relu, before);
    });
  }
  template <class T, int V>
  void backward_as(Device& device, bool adds) const {
    auto* const to = static_cast<Pack<T, V>*>(device.tensors[node_.inputs[0]].gradient);
    const auto* const grad = static_cast<const Pack<T, V>*>(device.tensors[out_].gradient);
    const auto* const argmax = reinterpret_cast<const Pack<std::uint8_t, V>*>(argmax_);
    by_sizes(node_, V, [&](const auto& sizes) {
      if (sizes.tiles() && !adds)
        fill_windows(device, to, grad, argmax, sizes);
      else
        gather(device, to, grad, argmax, sizes, adds);
    });
  }

  DlrunCudaNode node_;
  std::size_t out_;
  std::int64_t vector_ = 1;
  std::uint8_t* argmax_ = nullptr;
};

template <class T>
void average(Device& device, T* to, const T* from, std::int64_t channels, std::int64_t area) {
  for_each(device.stream, device.batch * channels, [=] __device__(std::int64_t i) {
    float sum = 0;
    for (std::int64_t pixel = 0; pixel < area; ++pixel)
      sum += number(from[(i / channels * area + pixel) * channels + i % channels]);
    put(to[i], sum / static_cast<float>(area));
  });
}

template <class T, int V>
void spread(Device& device, Pack<T, V>* to, const Pack<T, V>* grad, int groups, int area, bool adds) {
  const float share = 1.0F / static_cast<float>(area);
  for_each(device.stream, device.batch * groups * area, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / groups;
    const Pack<T, V> dy = grad[row / area * groups + (i - row * groups)];
    Pack<T, V> out{};
    if (adds) out = to[i];
    for (int k = 0; k < V; ++k) put(out.of[k], (adds ? number(out.of[k]) : 0.0F) + number(dy.of[k]) * share);
    to[i] = out;
  });
}

class AveragePool final : public Operator {
 public:
  AveragePool(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    void* to = device.tensors[out_].value;
    const void* from = device.tensors[node_.inputs[0]].value;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      average(device, static_cast<T*>(to), static_cast<const T*>(from), node_.channels, area());
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      node_.channels % 8 == 0 ? backward_as<T, 8>(device, adds) : backward_as<T, 1>(device, adds);
    });
  }

 private:
  template <class T, int V>
  void backward_as(Device& device, bool adds) const {
    spread(device, static_cast<Pack<T, V>*>(device.tensors[node_.inputs[0]].gradient),
           static_cast<const Pack<T, V>*>(device.tensors[out_].gradient),
           static_cast<int>(node_.channels) / V, static_cast<int>(area()), adds);
  }
  std::int64_t area() const { return node_.in_height * node_.in_width; }
  DlrunCudaNode node_;
  std::size_t out_;
};

}  // namespace

OperatorPtr make_max_pool(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<MaxPool>(device, plan.nodes[index], index);
}
OperatorPtr make_global_average_pool(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<AveragePool>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
