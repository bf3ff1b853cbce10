// SwiGLU: silu(gate) times up. Backward computes the gate's sigmoid anew.
#include "runtime/cuda/plugin/pack.hpp"

namespace dlrun::cuda {
namespace {

__device__ float sigmoid(float x) {
  return 1.0F / (1.0F + __expf(-x));
}

template <class P>
void gate_by(Device& device, P* to, const P* gates, const P* ups, std::int64_t packs) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    const P g = gates[i], u = ups[i];
    P all;
    for (int v = 0; v < P::kSize; ++v) {
      const float x = number(g.of[v]);
      put(all.of[v], x * sigmoid(x) * number(u.of[v]));
    }
    to[i] = all;
  });
}

// A gradient to be left: where, and whether it is added to what is there; null: nobody wants it.
template <class P>
struct Left {
  P* to;
  bool adds;
  __device__ void put_pack(std::int64_t i, const float (&numbers)[P::kSize]) const {
    if (to == nullptr) return;
    P all{};
    if (adds) all = to[i];
    for (int v = 0; v < P::kSize; ++v) put(all.of[v], (adds ? number(all.of[v]) : 0.0F) + numbers[v]);
    to[i] = all;
  }
};

template <class P>
void pass_back(Device& device, Left<P> gate, Left<P> up, const P* gates, const P* ups, const P* grads,
               std::int64_t packs) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    const P g = gates[i], u = ups[i], grad = grads[i];
    float of_gate[P::kSize], of_up[P::kSize];
    for (int v = 0; v < P::kSize; ++v) {
      const float x = number(g.of[v]), s = sigmoid(x), dy = number(grad.of[v]);
      of_gate[v] = dy * number(u.of[v]) * s * (1.0F + x * (1.0F - s));
      of_up[v] = dy * x * s;
    }
    gate.put_pack(i, of_gate);
    up.put_pack(i, of_up);
  });
}

class SwiGlu final : public Operator {
 public:
  SwiGlu(const DlrunCudaNode& node, std::size_t index)
      : gate_(node.inputs[0]), up_(node.inputs[1]), out_(index) {}

  void forward(Device& device, Mode) override {
    const Tensor &gate = device.tensors[gate_], &up = device.tensors[up_], &out = device.tensors[out_];
    by_packs(device, out.elements, [&](auto pack, std::int64_t packs) {
      using P = decltype(pack);
      gate_by(device, static_cast<P*>(out.value), static_cast<const P*>(gate.value),
              static_cast<const P*>(up.value), packs);
    });
  }

  void backward(Device& device) override {
    Tensor &gate = device.tensors[gate_], &up = device.tensors[up_];
    const Tensor& out = device.tensors[out_];
    const bool adds_gate = gate.gradient != nullptr && claim(gate);
    const bool adds_up = up.gradient != nullptr && claim(up);
    by_packs(device, out.elements, [&](auto pack, std::int64_t packs) {
      using P = decltype(pack);
      pass_back(device, Left<P>{static_cast<P*>(gate.gradient), adds_gate},
                Left<P>{static_cast<P*>(up.gradient), adds_up}, static_cast<const P*>(gate.value),
                static_cast<const P*>(up.value), static_cast<const P*>(out.gradient), packs);
    });
  }

 private:
  std::size_t gate_, up_, out_;
};

}  // namespace

OperatorPtr make_swiglu(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<SwiGlu>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
