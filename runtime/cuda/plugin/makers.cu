// From the kind of a node to the operator that does it.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {
namespace {

// What has joined another node, or lies where its input does.
class Nothing final : public Operator {
 public:
  void forward(Device&, Mode) override {}
  void backward(Device&) override {}
};

OperatorPtr make_any_convolution(Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node,
                                 std::size_t index) {
  if (is_stem(device, plan, node)) return make_stem(device, node, index);
  if (node.groups > 1) return make_grouped_convolution(device, node, index);
  return make_convolution(device, node, index);
}

}  // namespace

OperatorPtr make_operator(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  switch (node.kind) {
    case DLRUN_CUDA_INPUT:
      return make_input(device, node, index);
    case DLRUN_CUDA_CONVOLUTION:
      return make_any_convolution(device, plan, node, index);
    case DLRUN_CUDA_TRANSPOSED_CONVOLUTION:
      return make_transposed_convolution(device, node, index);
    case DLRUN_CUDA_MAX_POOL:
      return make_max_pool(device, node, index);
    case DLRUN_CUDA_AVERAGE_POOL:
      return make_average_pool(device, node, index);
    case DLRUN_CUDA_WINDOW_AVERAGE:
      return make_window_average(device, node, index);
    case DLRUN_CUDA_LOCAL_RESPONSE_NORM:
      return make_local_response_norm(device, node, index);
    case DLRUN_CUDA_CONCAT:
      return make_concat(device, plan, node, index);
    case DLRUN_CUDA_BATCH_NORM:
      return make_batch_norm(device, node, index);
    case DLRUN_CUDA_NORM_POOL:
      return make_norm_pool(device, node, index);
    case DLRUN_CUDA_NORM_SUM:
      return make_norm_sum(device, plan, node, index);
    case DLRUN_CUDA_ACTIVATION:
      return make_activation(device, node, index);
    case DLRUN_CUDA_DROPOUT:
      return make_dropout(device, node, index);
    case DLRUN_CUDA_NOISE:
      return make_noise(device, node, index);
    case DLRUN_CUDA_RESHAPE:
    case DLRUN_CUDA_FLATTEN:
      return make_rearrangement(device, node, index);
    case DLRUN_CUDA_ADD:
      return make_add(device, node, index);
    case DLRUN_CUDA_SOFTMAX_LOSS:
      return make_softmax_loss(device, node, index);
    case DLRUN_CUDA_SIGMOID_LOSS:
      return make_sigmoid_loss(device, node, index);
    case DLRUN_CUDA_DETACH:
    case DLRUN_CUDA_ELIDED:
      return std::make_unique<Nothing>();
  }
  throw Failure("an operator of an unknown kind");
}

}  // namespace dlrun::cuda
