// Not on GPUs yet.
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_vocabulary_loss(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("vocabulary_loss has no form on a GPU yet");
}

}  // namespace dlrun::cuda
