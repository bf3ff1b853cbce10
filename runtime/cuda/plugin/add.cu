// Sum of two values, with a ReLU after it where the plan says so.
#include "runtime/cuda/plugin/pack.hpp"
#include "runtime/cuda/plugin/pointwise.hpp"

namespace dlrun::cuda {
namespace {

template <class P>
void sum(Device& device, P* to, const P* left, const P* right, std::int64_t packs, bool relu) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    P all = left[i];
    const P more = right[i];
    for (int v = 0; v < P::kSize; ++v) {
      const float total = number(all.of[v]) + number(more.of[v]);
      put(all.of[v], relu && total < 0 ? 0.0F : total);
    }
    to[i] = all;
  });
}

class Add final : public Operator {
 public:
  Add(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor &left = device.tensors[node_.inputs[0]], &right = device.tensors[node_.inputs[1]];
    const Tensor& out = device.tensors[out_];
    by_packs(device, out.elements, [&](auto pack, std::int64_t packs) {
      using P = decltype(pack);
      sum(device, static_cast<P*>(out.value), static_cast<const P*>(left.value),
          static_cast<const P*>(right.value), packs, rectifies(node_));
    });
  }
  void backward(Device& device) override {
    if ((node_.facts & DLRUN_CUDA_PASSES_GRADIENT) != 0) {  // it is there
      for (std::size_t i = 0; i < node_.input_count; ++i) claim(device.tensors[node_.inputs[i]]);
      return;
    }
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
