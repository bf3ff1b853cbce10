// Means over windows of images or volumes. Backward gathers, so that the sums have one order: the same bits
// in every run.
#include "runtime/cuda/plugin/pack.hpp"
#include "runtime/cuda/plugin/window.hpp"

namespace dlrun::cuda {
namespace {

// Of a side of the window at that place: how much lies inside.
template <class S>
__device__ inline int inside(const S& s, int place, int extent) {
  const int begin = place * s.stride - s.padding;
  return min(begin + s.window, extent) - max(begin, 0);
}

// 1 over the pixels that a window's mean is over: all of the window, or those inside the image.
template <class Window>
__device__ inline float share_of(const Sizes& s, const Window& at, bool counts_padding) {
  if (counts_padding) return 1.0F / static_cast<float>(s.window * s.window);
  return 1.0F / static_cast<float>(inside(s, at.row, s.in_height) * inside(s, at.column, s.in_width));
}
template <class Window>
__device__ inline float share_of(const VolumeSizes& s, const Window& at, bool counts_padding) {
  if (counts_padding) return 1.0F / static_cast<float>(s.window * s.window * s.window);
  return 1.0F / static_cast<float>(inside(s, at.plane, s.in_depth) * inside(s, at.row, s.in_height) *
                                   inside(s, at.column, s.in_width));
}

template <class P, class S>
void means(Device& device, P* to, const P* from, S s, bool counts_padding) {
  for_each(device.stream, s.packs_out(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    const auto window = place_out(s, i);
    float sum[P::kSize] = {};
    for_pixels(s, window, [&](int pack, int) {
      const P seen = from[pack];
      for (int k = 0; k < P::kSize; ++k) sum[k] += number(seen.of[k]);
    });
    const float share = share_of(s, window, counts_padding);
    P out;
    for (int k = 0; k < P::kSize; ++k) put(out.of[k], sum[k] * share);
    to[i] = out;
  });
}

template <class P, class S>
void gather(Device& device, P* to, const P* grad, S s, bool counts_padding, bool adds) {
  for_each(device.stream, s.packs_in(device.batch), [=] __device__(std::int64_t wide) {
    const int i = static_cast<int>(wide);
    float sum[P::kSize] = {};
    if (adds) {
      const P before = to[i];
      for (int k = 0; k < P::kSize; ++k) sum[k] = number(before.of[k]);
    }
    for_windows(s, place_in(s, i), [&](const auto& reach) {
      const float share = share_of(s, reach, counts_padding);
      const P dy = grad[reach.pack];
      for (int k = 0; k < P::kSize; ++k) sum[k] += number(dy.of[k]) * share;
    });
    P out;
    for (int k = 0; k < P::kSize; ++k) put(out.of[k], sum[k]);
    to[i] = out;
  });
}

class WindowAverage final : public Operator {
 public:
  WindowAverage(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), counts_padding_(counts_padding(settings_of<op::AveragePool>(node))) {
    check_fits(device, node,
               node.channels % (16 / static_cast<std::int64_t>(device.size())) == 0
                   ? 16 / static_cast<std::int64_t>(device.size())
                   : 1);
  }
  void forward(Device& device, Mode) override {
    void* to = device.tensors[out_].value;
    const void* from = device.tensors[node_.inputs[0]].value;
    by_type(device, [&](auto zero) {
      by_pack<decltype(zero)>(node_.channels, [&](auto pack) {
        using P = decltype(pack);
        by_sizes(node_, P::kSize, [&](const auto& sizes) {
          means(device, static_cast<P*>(to), static_cast<const P*>(from), sizes, counts_padding_);
        });
      });
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    const void* grad = device.tensors[out_].gradient;
    by_type(device, [&](auto zero) {
      by_pack<decltype(zero)>(node_.channels, [&](auto pack) {
        using P = decltype(pack);
        by_sizes(node_, P::kSize, [&](const auto& sizes) {
          gather(device, static_cast<P*>(in.gradient), static_cast<const P*>(grad), sizes, counts_padding_,
                 adds);
        });
      });
    });
  }

 private:
  // The CPU's rule: padding counts where there is any and it is to.
  static bool counts_padding(const op::AveragePool& spec) {
    return spec.counted == runtime::Padding::counts && spec.padding > 0;
  }

  DlrunCudaNode node_;
  std::size_t out_;
  bool counts_padding_;
};

}  // namespace

OperatorPtr make_average_pool(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<WindowAverage>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
