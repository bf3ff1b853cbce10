// Causal attention: rotary positions, and one of the forms of attention.hpp. Queries and keys are turned
// where they lie: nobody else reads them, and the layer before does not need its output on the way back.
#include "runtime/cuda/plugin/attention.hpp"
#include "runtime/cuda/plugin/random_bits.hpp"

namespace dlrun::cuda {
namespace {

// Turns pairs of features by an angle that grows with the position: feature i and i + width / 2.
template <class T>
void rotate(Device& device, T* packed, const AttentionSizes& of, float base, float direction) {
  const std::int64_t half = of.width / 2, turned = of.heads + of.key_heads, row = of.packed(),
                     width = of.width, length = of.length;
  const float step = -2.0F * std::log2(base) / static_cast<float>(width);
  for_each(device.stream, of.batch * of.length * turned * half, [=] __device__(std::int64_t i) {
    const std::int64_t feature = i % half, head = i / half % turned, place = i / half / turned;
    const float angle = static_cast<float>(place % length) * exp2f(step * static_cast<float>(feature));
    float sine, cosine;
    sincosf(angle, &sine, &cosine);
    sine *= direction;
    T &left = packed[place * row + head * width + feature], &right = (&left)[half];
    const float x = number(left), y = number(right);
    put(left, x * cosine - y * sine);
    put(right, y * cosine + x * sine);
  });
}

class Attention final : public Operator {
 public:
  Attention(Device& device, const DlrunCudaPlan& plan, std::size_t index)
      : in_(plan.nodes[index].inputs[0]), out_(index), spec_(settings_of<op::Attention>(plan.nodes[index])) {
    const DlrunCudaNode& node = plan.nodes[index];
    sizes_ = {device.batch, node.height, spec_.heads, spec_.keys(), spec_.width(node.in_channels)};
    if (device.tensors[in_].last_reader != index)
      throw Failure("attention is not supported on GPUs if another layer reads its input, too");
    figures_ = static_cast<float*>(device.memory.device(
        static_cast<std::size_t>(sizes_.queries()) * sizeof(float), "figures of attention"));
    if (spec_.dropout > 0)
      dropout_ = {device.keys + node.rng_key, dies_below(spec_.dropout), 1 / (1 - spec_.dropout),
                  spec_.first_head, spec_.total_heads()};
    else
      form_ = make_fused_attention(device, sizes_);
    if (form_ == nullptr) form_ = make_plain_attention(device, sizes_);
  }

  void forward(Device& device, Mode mode) override {
    turn(device, device.tensors[in_].value, 1);
    form_->forward(device, arrays(device, mode));
  }

  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    claim(in);
    form_->backward(device, arrays(device, Mode::train));
    turn(device, in.gradient, -1);
  }

 private:
  AttentionArrays arrays(const Device& device, Mode mode) const {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    return {in.value,     out.value,   figures_,
            out.gradient, in.gradient, mode == Mode::train ? dropout_ : ShareDropout{}};
  }

  void turn(Device& device, void* packed, float direction) const {
    if (spec_.rotary_base <= 0) return;
    by_type(device, [&](auto zero) {
      rotate(device, static_cast<decltype(zero)*>(packed), sizes_, spec_.rotary_base, direction);
    });
  }

  std::size_t in_, out_;
  op::Attention spec_;
  AttentionSizes sizes_{};
  ShareDropout dropout_{};
  float* figures_ = nullptr;
  std::unique_ptr<AttentionForm> form_;
};

}  // namespace

OperatorPtr make_attention(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Attention>(device, plan, index);
}

}  // namespace dlrun::cuda
