// Tensor copy: the value as it lies. Each rank of the tensor group has a term of its gradient, and backward
// sums them in place.
#include "runtime/cpu/operators/group_sum.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class TensorCopy final : public Operator {
 public:
  explicit TensorCopy(Plan& plan)
      : in_(plan.input()), out_(plan.output()), sum_(plan, in_.elements, Pass::backward) {
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    Plan::share(out_.value, in_.value);
    if (!in_.needs_gradient()) return;
    Plan::share(in_.gradients[plan.claim_gradient()], out_.gradients[0]);
  }

  void forward(const Run&) override {}
  void backward_data(const Run&) override {
    if (in_.needs_gradient()) sum_.run(out_.gradient());
  }

 private:
  Tensor& in_;
  Tensor& out_;
  GroupSum sum_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TensorCopy&) {
  return std::make_unique<TensorCopy>(plan);
}

}  // namespace dlrun::runtime
