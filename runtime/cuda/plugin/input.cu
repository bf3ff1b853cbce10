// Input on the device: what the host filled (floats or bytes, channels first) as NHWC in the plan's type.
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

// One thread per pixel: neighbours read neighbours. 32 bits where they are enough, as divisions of 64 cost
// more than the memory does.
template <class T, class Index>
void convert(Device& device, const DlrunCudaNode& node, T* to) {
  const auto channels = static_cast<Index>(node.channels),
             area = static_cast<Index>(node.height * node.width);
  const Rows from = device.input;
  for_each(device.stream, device.batch * area, [=] __device__(std::int64_t wide) {
    const auto pixel = static_cast<Index>(wide);
    const Index image = pixel / area, start = image * channels * area + (pixel - image * area);
    for (Index channel = 0; channel < channels; ++channel)
      put(to[pixel * channels + channel], from.at(start + channel * area, static_cast<int>(channel)));
  });
}

template <class T>
void convert(Device& device, const DlrunCudaNode& node, void* to) {
  if (device.batch * node.channels * node.height * node.width <= INT32_MAX)
    convert<T, std::int32_t>(device, node, static_cast<T*>(to));
  else
    convert<T, std::int64_t>(device, node, static_cast<T*>(to));
}

class Input final : public Operator {
 public:
  Input(const DlrunCudaNode& node, std::size_t index) : node_(node), index_(index) {}
  void forward(Device& device, Mode) override {
    if (!device.tensors[index_].wanted) return;
    void* to = device.tensors[index_].value;
    if (device.half())
      convert<Bf16>(device, node_, to);
    else
      convert<float>(device, node_, to);
  }
  void backward(Device&) override {}

 private:
  DlrunCudaNode node_;
  std::size_t index_;
};

}  // namespace

OperatorPtr make_input(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Input>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
