// Target loss: it has no form on a GPU yet. The host refuses it before a plan is made (lowering.cpp).
#include "runtime/cuda/plugin/engine.hpp"

namespace dlrun::cuda {

OperatorPtr make_target_loss(Device&, const DlrunCudaPlan&, std::size_t) {
  throw Failure("a loss over targets has no form on a GPU");
}

}  // namespace dlrun::cuda
