// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_attention(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("attention has no form on a GPU yet");
}

}  // namespace dlrun::cuda
