// Sum of two values, with a ReLU after it where the plan says so.
#include "runtime/cuda/plugin/pointwise.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void sum(Device& device, void* out, const void* left, const void* right, std::int64_t count, bool relu) {
  T* to = static_cast<T*>(out);
  const T *a = static_cast<const T*>(left), *b = static_cast<const T*>(right);
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float total = number(a[i]) + number(b[i]);
    put(to[i], relu && total < 0 ? 0.0F : total);
  });
}

class Add final : public Operator {
 public:
  Add(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor &left = device.tensors[node_.inputs[0]], &right = device.tensors[node_.inputs[1]];
    const Tensor& out = device.tensors[out_];
    if (device.half())
      sum<Bf16>(device, out.value, left.value, right.value, out.elements, rectifies(node_));
    else
      sum<float>(device, out.value, left.value, right.value, out.elements, rectifies(node_));
  }
  void backward(Device& device) override {
    const Tensor& out = device.tensors[out_];
    const void* mask = rectifies(node_) ? out.value : nullptr;
    for (std::size_t i = 0; i < node_.input_count; ++i)
      pass_gradient(device, device.tensors[node_.inputs[i]], out, mask);
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

}  // namespace

OperatorPtr make_add(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Add>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
