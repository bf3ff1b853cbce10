// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_layer_norm(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("layer_norm has no form on a GPU yet");
}

}  // namespace dlrun::cuda
