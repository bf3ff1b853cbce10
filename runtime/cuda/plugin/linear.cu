// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_linear(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("linear has no form on a GPU yet");
}

}  // namespace dlrun::cuda
