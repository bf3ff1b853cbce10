// ReLU on its own, where no operator before it can take it over. Backward is what the engine does to the
// gradient of any ReLU's output, so this operator only passes that on, in place.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Relu final : public Operator {
 public:
  explicit Relu(Plan& plan) : in_(plan.input()), out_(plan.output()) {
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    out_.masked_by_producer = !in_.needs_gradient();
    if (in_.needs_gradient()) Plan::share(in_.gradients[plan.claim_gradient()], out_.gradients[0]);
  }

  void forward(const Run&) override { kernels::relu(out_.view(), in_.const_view(), out_.elements); }

 private:
  Tensor& in_;
  Tensor& out_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Relu&) {
  return std::make_unique<Relu>(plan);
}

}  // namespace dlrun::runtime
