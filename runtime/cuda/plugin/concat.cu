// Concatenation along the channels: each part copied to its place, its gradient copied back.
#include "runtime/cuda/plugin/slices.hpp"

namespace dlrun::cuda {
namespace {

class Concat final : public Operator {
 public:
  Concat(Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node, std::size_t index)
      : out_(index) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < node.input_count; ++i) {
      const std::int64_t channels = plan.nodes[node.inputs[i]].channels;
      parts_.push_back(
          {node.inputs[i], {device.batch * node.height * node.width, channels, first, node.channels}});
      first += channels;
    }
  }
  void forward(Device& device, Mode) override {
    for (const Part& part : parts_)
      copy_into_whole(device, device.tensors[out_].value, device.tensors[part.node].value, part.slice,
                      Copy::fresh);
  }
  void backward(Device& device) override {
    for (const Part& part : parts_) {
      Tensor& in = device.tensors[part.node];
      if (in.gradient == nullptr) continue;
      copy_out_of_whole(device, in.gradient, device.tensors[out_].gradient, part.slice,
                        claim(in) ? Copy::sum : Copy::fresh);
    }
  }

 private:
  struct Part {
    std::size_t node;
    Slice slice;
  };
  std::size_t out_;
  std::vector<Part> parts_;
};

}  // namespace

OperatorPtr make_concat(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Concat>(device, plan, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
