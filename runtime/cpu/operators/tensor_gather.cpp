// Tensor gather: the slices of the ranks of a tensor group, one behind the other. Each rank then has a term
// of the gradient, and backward gives its slice of their sum. Linear layers read the value in backward, too:
// it is gathered anew for them, so that a slice alone is kept until then.
#include <algorithm>

#include "runtime/cpu/operators/group_slices.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class TensorGather final : public Operator {
 public:
  explicit TensorGather(Plan& plan)
      : in_(plan.input()), out_(plan.output()), slices_(plan, out_.elements, Pass::backward) {
    if (in_.needs_gradient()) in_gradient_ = in_.gradients[plan.claim_gradient()];
    if (!is_read_by_linear_layers(plan)) return;
    out_.again = plan.buffer(out_.value->bytes);
    plan.use(in_.value, Pass::backward);
  }

  void forward(const Run&) override { slices_.gather(in_.const_view(), out_.view()); }
  void restore(const Run&) override { slices_.gather(in_.const_view(), {out_.again->data, out_.precision}); }
  void backward_data(const Run&) override {
    if (in_gradient_ != nullptr)
      slices_.sum(out_.const_gradient(), {in_gradient_->data, in_.gradient_precision});
  }

 private:
  static bool is_read_by_linear_layers(const Plan& plan) {
    const auto& readers = plan.readers_of_output();
    return std::all_of(readers.begin(), readers.end(), [&plan](std::size_t reader) {
      return std::holds_alternative<op::Linear>(plan.graph().nodes[reader].operation);
    });
  }

  Tensor& in_;
  Tensor& out_;
  GroupSlices slices_;
  Buffer* in_gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TensorGather&) {
  return std::make_unique<TensorGather>(plan);
}

}  // namespace dlrun::runtime
