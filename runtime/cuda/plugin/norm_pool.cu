// Batch norm, its ReLU and the maximum pooling behind it, as most image models begin: what lies between is
// computed where it is needed and never written. Forward keeps of each window which pixel is its maximum, and
// its value: that is all that the sums of backward need. The map behind them gathers from the windows, so
// that sums have one order.
#include "runtime/cuda/plugin/batch_norm_statistics.hpp"
#include "runtime/cuda/plugin/pool_indices.hpp"

namespace dlrun::cuda {
namespace {

using norm::Channels;

// The values that are compared are rounded as they would be if they were written.
template <class T, int V>
void highest(Device& device, Pack<T, V>* to, Pack<T, V>* best_x, Pack<std::uint8_t, V>* argmax,
             const Pack<T, V>* from, norm::Affine affine, Sizes s, bool relu) {
  for_each(device.stream, s.packs_out(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    const PackPlace window = place_out(s, i);
    Channels<V> mean, scale, bias;
    mean.load(affine.mean, window.group), scale.load(affine.scale, window.group);
    bias.load(affine.bias, window.group);
    Maxima<V> maxima;
    Pack<T, V> kept;
    for_pixels(s, window, [&](int pack, int pixel) {
      const Pack<T, V> seen = from[pack];
      for (int k = 0; k < V; ++k) {
        T rounded;
        put(rounded, fmaf(number(seen.of[k]) - mean.of[k], scale.of[k], bias.of[k]));
        if (maxima.see(k, number(rounded), pixel)) kept.of[k] = seen.of[k];
      }
    });
    to[i] = maxima.template values<T>(relu);
    best_x[i] = kept, argmax[i] = maxima.pixel;
  });
}

// Sums of dy and dy (x - mean) over the windows: `walk` is of those.
template <class T, int V>
__global__ __launch_bounds__(norm::kThreads, norm::kBackward) void measure_windows(
    const Pack<T, V>* best_x, const Pack<T, V>* grad, const Pack<std::uint8_t, V>* argmax,
    norm::Affine affine, norm::Walk walk, float* partial) {
  cudaTriggerProgrammaticLaunchCompletion();
  const std::int64_t group = norm::my_group();
  float first[V] = {}, second[V] = {};
  if (group < walk.columns) {
    Channels<V> mean;
    mean.load(affine.mean, group);
    norm::up<norm::kFew>(walk, group, [&](std::int64_t at, std::int64_t step, int count) {
#pragma unroll
      for (int r = 0; r < norm::kFew; ++r) {
        if (r >= count) break;
        const Pack<T, V> x = best_x[at + r * step], dy = grad[at + r * step];
        const Pack<std::uint8_t, V> index = argmax[at + r * step];
        for (int k = 0; k < V; ++k) {
          const float passed = index.of[k] == kNoIndex ? 0.0F : number(dy.of[k]);
          first[k] += passed;
          second[k] += passed * (number(x.of[k]) - mean.of[k]);
        }
      }
    });
  }
  norm::leave(first, second, group, walk, partial);
}

// A pixel a thread, as many as fit: what it waits for is the windows around it.
template <class T, int V>
void map_windows(Device& device, Pack<T, V>* to, const Pack<T, V>* x, const Pack<T, V>* grad,
                 const Pack<std::uint8_t, V>* argmax, Sizes s, norm::Affine affine,
                 norm::GradientFactors by) {
  for_each(device.stream, s.packs_in(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    const PackPlace pixel = place_in(s, i);
    Pack<T, V> seen = x[i];
    float dy[V] = {};
    gather_by_argmax(s, pixel, grad, argmax, dy);
    Channels<V> mean, scale, constant, linear;
    mean.load(affine.mean, pixel.group), scale.load(affine.scale, pixel.group);
    constant.load(by.constant, pixel.group), linear.load(by.linear, pixel.group);
    for (int k = 0; k < V; ++k)
      put(seen.of[k],
          fmaf(dy[k], scale.of[k], -constant.of[k]) - (number(seen.of[k]) - mean.of[k]) * linear.of[k]);
    to[i] = seen;
  });
}

class NormPool final : public Operator {
 public:
  NormPool(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), sums_(device, node, device.batch * node.in_height * node.in_width) {
    check_pooling(device, node, sums_.vector());
    const auto elements = static_cast<std::size_t>(device.tensors[index].elements);
    argmax_ = static_cast<std::uint8_t*>(device.memory.device(elements, "pooling"));
    best_x_ = device.memory.device(elements * device.size(), "pooling");
  }

  void forward(Device& device, Mode mode) override {
    sums_.by_vector(device, [&](auto zero, auto size) {
      forward_as<decltype(zero), decltype(size)::value>(device, mode);
    });
  }
  void backward(Device& device) override {
    sums_.by_vector(
        device, [&](auto zero, auto size) { backward_as<decltype(zero), decltype(size)::value>(device); });
  }

 private:
  template <class T, int V>
  void forward_as(Device& device, Mode mode) {
    const void* x = device.tensors[node_.inputs[0]].value;
    if (mode == Mode::train)
      sums_.measure<T, V>(device, static_cast<const T*>(x));
    else
      sums_.take_running(device);
    highest(device, static_cast<Pack<T, V>*>(device.tensors[out_].value), static_cast<Pack<T, V>*>(best_x_),
            reinterpret_cast<Pack<std::uint8_t, V>*>(argmax_), static_cast<const Pack<T, V>*>(x),
            sums_.affine(device), Sizes(node_, V), rectifies(node_));
  }

  // The input has no other reader: its gradient is written, not added to.
  template <class T, int V>
  void backward_as(Device& device) {
    Tensor& in = device.tensors[node_.inputs[0]];
    const auto* grad = static_cast<const Pack<T, V>*>(device.tensors[out_].gradient);
    const auto* argmax = reinterpret_cast<const Pack<std::uint8_t, V>*>(argmax_);
    const norm::Walk walk{device.batch * node_.height * node_.width, node_.channels / V};
    measure_windows<T, V><<<sums_.back(), sums_.block(), 0, device.stream>>>(
        static_cast<const Pack<T, V>*>(best_x_), grad, argmax, sums_.affine(device), walk, sums_.partial());
    sums_.finish_gradients(device);
    if (in.gradient == nullptr) return;
    claim(in);
    map_windows(device, static_cast<Pack<T, V>*>(in.gradient), static_cast<const Pack<T, V>*>(in.value), grad,
                argmax, Sizes(node_, V), sums_.affine(device), sums_.grads());
    check(cudaGetLastError(), "batch norm and pooling");
  }

  DlrunCudaNode node_;
  std::size_t out_;
  norm::Sums sums_;
  std::uint8_t* argmax_ = nullptr;
  void* best_x_ = nullptr;  // of each window
};

}  // namespace

OperatorPtr make_norm_pool(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<NormPool>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
