// Reshape and flatten: a vector whose numbers mean an image's in the plain order becomes that image, or the
// other way round. The number at place i of the image is at plain(i) of the vector; a gradient goes back the
// way the value came.
#include "runtime/cuda/plugin/device.hpp"
#include "runtime/cuda/plugin/image_order.hpp"

namespace dlrun::cuda {
namespace {

enum class Into { image, vector };

template <class T>
void move(Device& device, T* to, const T* from, std::int64_t count, ImageOrder order, Into into, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t place) {
    const std::int64_t plain = order.plain(place);
    T& target = to[into == Into::image ? place : plain];
    const float moved = number(from[into == Into::image ? plain : place]);
    put(target, (adds ? number(target) : 0.0F) + moved);
  });
}

class Rearrangement final : public Operator {
 public:
  Rearrangement(const DlrunCudaNode& node, std::size_t index, Into there)
      : in_(node.inputs[0]),
        out_(index),
        order_(there == Into::image ? ImageOrder{node.channels, node.height * node.width}
                                    : ImageOrder{node.in_channels, node.in_height * node.in_width}),
        there_(there) {}

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    run(device, out.value, in.value, out.elements, there_, false);
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    const Into back = there_ == Into::image ? Into::vector : Into::image;
    run(device, in.gradient, device.tensors[out_].gradient, in.elements, back, adds);
  }

 private:
  void run(Device& device, void* to, const void* from, std::int64_t count, Into into, bool adds) const {
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      move(device, static_cast<T*>(to), static_cast<const T*>(from), count, order_, into, adds);
    });
  }

  std::size_t in_, out_;
  ImageOrder order_;
  Into there_;
};

}  // namespace

OperatorPtr make_reshape(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Rearrangement>(plan.nodes[index], index, Into::image);
}
OperatorPtr make_flatten(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Rearrangement>(plan.nodes[index], index, Into::vector);
}

}  // namespace dlrun::cuda
