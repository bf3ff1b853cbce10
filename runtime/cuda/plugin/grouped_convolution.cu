// A convolution in groups, each as a convolution of its own on a copy of its channels: cuDNN's grouped forms
// are few and slow where groups are wide, as AlexNet's are. The filters of a group lie together, so that
// weights and their gradients are not copied.
#include "runtime/cuda/plugin/bias.hpp"
#include "runtime/cuda/plugin/convolution_passes.hpp"
#include "runtime/cuda/plugin/slices.hpp"

namespace dlrun::cuda {
namespace {

class GroupedConvolution final : public Operator {
 public:
  GroupedConvolution(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), one_(of_one_group(node)) {
    weights_ = one_.weights();
    x_ = workspace(device, in_pixels(device) * one_.in_channels);
    y_ = workspace(device, out_pixels(device) * one_.channels);
    dy_ = workspace(device, out_pixels(device) * one_.channels);
    if (learns()) grad_ = device.half() ? workspace(device, weights_) : device.gradients + node.weight;
    if (device.tensors[node.inputs[0]].gradient != nullptr)
      dx_ = workspace(device, in_pixels(device) * one_.in_channels);
    passes_ = std::make_unique<Passes>(device, one_,
                                       Passes::Arrays{x_, device.weights(node.weight), y_, dy_, grad_, dx_});
  }

  void forward(Device& device, Mode) override {
    for (std::int64_t group = 0; group < node_.groups; ++group) {
      copy_out_of_whole(device, x_, device.tensors[node_.inputs[0]].value, in(device, group), Copy::fresh);
      passes_->forward(device, x_, device.weights(weight_of(group)), y_);
      copy_into_whole(device, device.tensors[out_].value, y_, out(device, group), Copy::fresh);
    }
    add_bias(device, node_, device.tensors[out_]);
  }

  // Nothing beside main but for a pass's own workspace: the copies are reused from group to group.
  void backward(Device& device) override {
    join_side(device);
    Tensor& from = device.tensors[node_.inputs[0]];
    bias_backward(device, node_, device.tensors[out_]);
    const Copy how = from.gradient != nullptr && claim(from) ? Copy::sum : Copy::fresh;
    for (std::int64_t group = 0; group < node_.groups; ++group) {
      copy_out_of_whole(device, x_, from.value, in(device, group), Copy::fresh);
      copy_out_of_whole(device, dy_, device.tensors[out_].gradient, out(device, group), Copy::fresh);
      if (learns()) leave_weights(device, group);
      if (from.gradient == nullptr) continue;
      passes_->data(device, device.weights(weight_of(group)), dy_, dx_, Passes::Into::fresh);
      copy_into_whole(device, from.gradient, dx_, in(device, group), how);
    }
  }

 private:
  bool learns() const { return node_.learning != DLRUN_CUDA_FROZEN; }
  void leave_weights(Device& device, std::int64_t group) {
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE;
    float* const arena = device.gradients + weight_of(group);
    fork_side(device);
    passes_->weights(device.side, x_, dy_, device.half() ? grad_ : arena,
                     adds && !device.half() ? Passes::Into::sum : Passes::Into::fresh);
    join_side(device);
    if (device.half()) widen(device.stream, arena, grad_, weights_, adds);
  }
  static Geometry of_one_group(const DlrunCudaNode& node) {
    Geometry out = Geometry::of(node);
    out.in_channels /= node.groups, out.channels /= node.groups;
    return out;
  }
  static void* workspace(Device& device, std::int64_t numbers) {
    return device.memory.device(static_cast<std::size_t>(numbers) * device.size(), "a group's channels");
  }
  std::int64_t in_pixels(const Device& device) const {
    return device.batch * node_.in_height * node_.in_width;
  }
  std::int64_t out_pixels(const Device& device) const { return device.batch * node_.height * node_.width; }
  Slice in(const Device& device, std::int64_t group) const {
    return {in_pixels(device), one_.in_channels, group * one_.in_channels, node_.in_channels};
  }
  Slice out(const Device& device, std::int64_t group) const {
    return {out_pixels(device), one_.channels, group * one_.channels, node_.channels};
  }
  std::size_t weight_of(std::int64_t group) const {
    return node_.weight + static_cast<std::size_t>(group * weights_);
  }

  DlrunCudaNode node_;
  std::size_t out_;
  Geometry one_;
  std::int64_t weights_ = 0;  // of one group
  void *x_ = nullptr, *y_ = nullptr, *dy_ = nullptr, *dx_ = nullptr, *grad_ = nullptr;
  std::unique_ptr<Passes> passes_;
};

}  // namespace

OperatorPtr make_grouped_convolution(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<GroupedConvolution>(device, node, index);
}

}  // namespace dlrun::cuda
