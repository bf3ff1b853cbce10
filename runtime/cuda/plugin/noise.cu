// Noise: the CPU's rule (runtime/base/keyed_normal.hpp), a function of seed, step and sample. The key of a
// step is read from device memory: a captured graph must not hold it. In evaluation the host sends that of
// the noise that is shown.
#include "runtime/base/keyed_normal.hpp"
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

class Noise final : public Operator {
 public:
  Noise(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor& out = device.tensors[out_];
    by_type(device, [&](auto zero) { draw(device, static_cast<decltype(zero)*>(out.value), out.elements); });
  }
  void backward(Device&) override {}

  template <class T>
  void draw(Device& device, T* to, std::int64_t count) const {
    const std::uint64_t* key_of_step = device.keys + node_.rng_key;
    const std::int64_t size = node_.channels, first_row = node_.first_row;
    for_each(device.stream, count, [=] __device__(std::int64_t i) {
      const std::int64_t row = i / size;
      const std::uint64_t key = runtime::with_part(*key_of_step, static_cast<std::uint64_t>(first_row + row));
      const runtime::UniformPair of = runtime::uniform_pair(key, static_cast<std::uint64_t>(i - row * size));
      put(to[i], static_cast<float>(sqrt(-2 * log(of.radius)) * cos(runtime::kFullTurn * of.turn)));
    });
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

}  // namespace

OperatorPtr make_noise(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Noise>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
