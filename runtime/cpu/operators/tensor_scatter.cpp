// Tensor scatter: each rank of the tensor group has a term of the value, and gets its slice of their sum. The
// gradient of each term is that of the sum: backward gathers the slices of it.
#include "runtime/cpu/operators/group_slices.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class TensorScatter final : public Operator {
 public:
  explicit TensorScatter(Plan& plan)
      : in_(plan.input()), out_(plan.output()), slices_(plan, in_.elements, Pass::forward) {
    out_.gradient_only_read = out_.value_not_read = true;
    if (in_.needs_gradient()) in_gradient_ = in_.gradients[plan.claim_gradient()];
  }

  void forward(const Run&) override { slices_.sum(in_.const_view(), out_.view()); }
  void backward_data(const Run&) override {
    if (in_gradient_ != nullptr)
      slices_.gather(out_.const_gradient(), {in_gradient_->data, in_.gradient_precision});
  }

 private:
  Tensor& in_;
  Tensor& out_;
  GroupSlices slices_;
  Buffer* in_gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TensorScatter&) {
  return std::make_unique<TensorScatter>(plan);
}

}  // namespace dlrun::runtime
