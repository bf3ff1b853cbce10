// Dropout: the CPU's rule (kernels/elementwise.cpp), so that both draw the same mask where the elements have
// the same order, which is so for one pixel. The key of a step is read from device memory: a captured graph
// must not hold it.
#include "runtime/cuda/plugin/random_bits.hpp"

namespace dlrun::cuda {
namespace {

// The number that an element has in the whole value, of which a tensor group may divide the features or the
// rows; `first`: that of a slice's first one.
struct Numbers {
  std::int64_t features, part, parts, first;

  __device__ std::uint32_t of(std::int64_t i) const {
    if (parts == 1) return static_cast<std::uint32_t>(first + i);
    return static_cast<std::uint32_t>((i / features * parts + part) * features + i % features);
  }
};

template <class T>
void draw(Device& device, T* to, const T* from, std::int64_t count, Numbers numbers,
          const std::uint64_t* key_at, float probability, bool adds) {
  const std::uint32_t bound = dies_below(probability);
  const float scale = 1.0F / (1.0F - probability);
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const std::uint32_t bits = random_bits(numbers.of(i), *key_at);
    const float kept = bits >= bound ? number(from[i]) * scale : 0.0F;
    put(to[i], (adds ? number(to[i]) : 0.0F) + kept);
  });
}

class Dropout final : public Operator {
 public:
  Dropout(const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), probability_(settings_of<op::Dropout>(node).probability) {}
  void forward(Device& device, Mode mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    if (mode == Mode::train) return map(device, out.value, in.value, out.elements, false);
    check(cudaMemcpyAsync(out.value, in.value, static_cast<std::size_t>(out.elements) * device.size(),
                          cudaMemcpyDeviceToDevice, device.stream),
          "a copy on the device");
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    map(device, in.gradient, device.tensors[out_].gradient, in.elements, adds);
  }

 private:
  void map(Device& device, void* to, const void* from, std::int64_t count, bool adds) const {
    const std::uint64_t* key = device.keys + node_.rng_key;
    const Numbers numbers{node_.channels, node_.part, node_.parts, node_.slice * count};
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      draw(device, static_cast<T*>(to), static_cast<const T*>(from), count, numbers, key, probability_, adds);
    });
  }
  DlrunCudaNode node_;
  std::size_t out_;
  float probability_;
};

}  // namespace

OperatorPtr make_dropout(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Dropout>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
