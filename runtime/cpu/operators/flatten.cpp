// Flatten: disappears in fuse() wherever its readers can take an image as it lies. What is left here is a
// flatten that nothing of ours can read; it is refused.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

OperatorPtr make_operator(Plan&, const op::Flatten&) {
  return nullptr;
}

}  // namespace dlrun::runtime
