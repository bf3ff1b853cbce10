// Tensor sum: each rank of the tensor group has a term of the value. The gradient of each term is that of the
// sum, and lies in its place. Scores for the loss are written in f32.
#include <cstring>

#include "runtime/cpu/operators/group_sum.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class TensorSum final : public Operator {
 public:
  explicit TensorSum(Plan& plan)
      : in_(plan.input()), out_(plan.output()), sum_(plan, in_.elements, Pass::forward) {
    const Precision precision = feeds_loss(plan) ? Precision::f32 : in_.precision;
    plan.set_layout(out_, with_type(in_.desc, data_type(precision)), precision, in_.extents);
    out_.gradient_only_read = in_.gradient_only_read;
    out_.value_not_read = true;
    if (in_.value_not_read && in_.masked_by_producer && precision == in_.precision)
      Plan::share(out_.value, in_.value);
    if (in_.needs_gradient()) Plan::share(in_.gradients[plan.claim_gradient()], out_.gradients[0]);
  }

  void forward(const Run&) override { sum_.run(in_.const_view(), out_.view()); }

 private:
  static bool feeds_loss(Plan& plan) {
    for (const std::size_t reader : plan.readers_of_output())
      if (is_loss(plan.graph().nodes[reader])) return true;
    return false;
  }

  Tensor& in_;
  Tensor& out_;
  GroupSum sum_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TensorSum&) {
  return std::make_unique<TensorSum>(plan);
}

}  // namespace dlrun::runtime
