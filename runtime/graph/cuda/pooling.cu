// Maximum and average pooling over NHWC. Backward gathers, so that the sums have one order: the same bits in
// every run.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

constexpr std::uint8_t kNoWinner = 255;  // a window whose gradient goes nowhere

struct Sizes {
  std::int64_t channels, in_height, in_width, height, width, window, stride, padding;
  explicit Sizes(const DlrunCudaNode& node)
      : channels(node.channels),
        in_height(node.in_height),
        in_width(node.in_width),
        height(node.height),
        width(node.width),
        window(node.window),
        stride(node.stride),
        padding(node.padding) {}
};

template <class T>
void highest(Device& device, T* to, std::uint8_t* winners, const T* from, Sizes s, bool relu) {
  for_each(device.stream, device.batch * s.height * s.width * s.channels, [=] __device__(std::int64_t i) {
    const std::int64_t channel = i % s.channels, column = i / s.channels % s.width;
    const std::int64_t row = i / s.channels / s.width % s.height, image = i / s.channels / s.width / s.height;
    float best = -INFINITY;
    std::uint8_t winner = kNoWinner;
    for (std::int64_t y = 0; y < s.window; ++y)
      for (std::int64_t x = 0; x < s.window; ++x) {
        const std::int64_t v = row * s.stride - s.padding + y, u = column * s.stride - s.padding + x;
        if (v < 0 || u < 0 || v >= s.in_height || u >= s.in_width) continue;
        const float seen = number(from[((image * s.in_height + v) * s.in_width + u) * s.channels + channel]);
        if (winner == kNoWinner || seen > best) best = seen, winner = static_cast<std::uint8_t>(y * s.window + x);
      }
    if (relu && !(best > 0)) best = 0, winner = kNoWinner;
    put(to[i], best);
    winners[i] = winner;
  });
}

template <class T>
void gather(Device& device, T* to, const T* slope, const std::uint8_t* winners, Sizes s, bool adds) {
  for_each(device.stream, device.batch * s.in_height * s.in_width * s.channels, [=] __device__(std::int64_t i) {
    const std::int64_t channel = i % s.channels, u = i / s.channels % s.in_width;
    const std::int64_t v = i / s.channels / s.in_width % s.in_height;
    const std::int64_t image = i / s.channels / s.in_width / s.in_height;
    float sum = adds ? number(to[i]) : 0.0F;
    for (std::int64_t y = 0; y < s.window; ++y)
      for (std::int64_t x = 0; x < s.window; ++x) {
        const std::int64_t top = v + s.padding - y, left = u + s.padding - x;
        if (top < 0 || left < 0 || top % s.stride != 0 || left % s.stride != 0) continue;
        const std::int64_t row = top / s.stride, column = left / s.stride;
        if (row >= s.height || column >= s.width) continue;
        const std::int64_t at = ((image * s.height + row) * s.width + column) * s.channels + channel;
        if (winners[at] == y * s.window + x) sum += number(slope[at]);
      }
    put(to[i], sum);
  });
}

class MaxPool final : public Operator {
 public:
  MaxPool(Device& device, const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {
    if (node.window > 15) throw Failure("a pooling window of more than 15 pixels is not built for GPUs");
    winners_ = static_cast<std::uint8_t*>(
        device.memory.device(static_cast<std::size_t>(device.tensors[index].elements), "pooling"));
  }
  void forward(Device& device, Mode) override {
    void* to = device.tensors[out_].value;
    const void* from = device.tensors[node_.inputs[0]].value;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      highest(device, static_cast<T*>(to), winners_, static_cast<const T*>(from), Sizes(node_), node_.relu != 0);
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    const void* slope = device.tensors[out_].gradient;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      gather(device, static_cast<T*>(in.gradient), static_cast<const T*>(slope), winners_, Sizes(node_), adds);
    });
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
  std::uint8_t* winners_ = nullptr;
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

template <class T>
void spread(Device& device, T* to, const T* slope, std::int64_t channels, std::int64_t area, bool adds) {
  for_each(device.stream, device.batch * channels * area, [=] __device__(std::int64_t i) {
    const float part = number(slope[i / channels / area * channels + i % channels]) / static_cast<float>(area);
    put(to[i], (adds ? number(to[i]) : 0.0F) + part);
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
    const void* slope = device.tensors[out_].gradient;
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      spread(device, static_cast<T*>(in.gradient), static_cast<const T*>(slope), node_.channels, area(), adds);
    });
  }

 private:
  std::int64_t area() const { return node_.in_height * node_.in_width; }
  DlrunCudaNode node_;
  std::size_t out_;
};

}  // namespace

Made make_max_pool(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<MaxPool>(device, node, index);
}
Made make_average_pool(Device&, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<AveragePool>(node, index);
}

}  // namespace dlrun::cuda
