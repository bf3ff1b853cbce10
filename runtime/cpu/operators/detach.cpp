// Detach: the value as it lies, in the place of its input; the plan gives it no gradient (plan.cpp).
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Detach final : public Operator {
 public:
  explicit Detach(Plan& plan) {
    const Tensor& in = plan.input();
    plan.set_layout(plan.output(), in.desc, in.precision, in.extents);
    Plan::share(plan.output().value, in.value);
  }
  void forward(const Run&) override {}
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Detach&) {
  return std::make_unique<Detach>(plan);
}

}  // namespace dlrun::runtime
