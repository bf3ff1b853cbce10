// Not on CPUs yet.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

OperatorPtr make_operator(Plan&, const op::RmsNorm&) {
  return nullptr;
}

}  // namespace dlrun::runtime
