// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_rms_norm(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("rms_norm has no form on a GPU yet");
}

}  // namespace dlrun::cuda
