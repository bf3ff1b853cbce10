// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_swiglu(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("swiglu has no form on a GPU yet");
}

}  // namespace dlrun::cuda
