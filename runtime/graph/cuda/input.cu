// Input on the device: what the host filled (floats or bytes, channels first) as NHWC in the plan's type.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void convert(Device& device, const DlrunCudaNode& node, T* to) {
  const std::int64_t channels = node.channels, area = node.height * node.width;
  const Rows from = device.input;
  for_each(device.stream, device.batch * channels * area, [=] __device__(std::int64_t i) {
    const std::int64_t channel = i % channels, pixel = i / channels % area, image = i / channels / area;
    put(to[i], from.at((image * channels + channel) * area + pixel, static_cast<int>(channel)));
  });
}

class Input final : public Operator {
 public:
  Input(const DlrunCudaNode& node, std::size_t index) : node_(node), index_(index) {}
  void forward(Device& device, Mode) override {
    if (!device.tensors[index_].wanted) return;
    void* to = device.tensors[index_].value;
    if (device.half())
      convert(device, node_, static_cast<Bf16*>(to));
    else
      convert(device, node_, static_cast<float*>(to));
  }
  void backward(Device&) override {}

 private:
  DlrunCudaNode node_;
  std::size_t index_;
};

}  // namespace

Made make_input(Device&, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Input>(node, index);
}

}  // namespace dlrun::cuda
