// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_embedding(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("embedding has no form on a GPU yet");
}

}  // namespace dlrun::cuda
