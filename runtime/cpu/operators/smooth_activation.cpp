// Leaky ReLU and tanh on their own, where no operator before them can take them over. Backward is the
// engine's, from the output (settle), and in place. Behind a batch norm, whose backward reads its input
// alone, the output lies in the place of what it is of.
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

template <class Spec>
class SmoothActivation final : public Operator {
 public:
  SmoothActivation(Plan& plan, const Spec& spec, Activation activation, float slope)
      : spec_(spec), in_(plan.input()), out_(plan.output()) {
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    if (in_.value_not_read && plan.is_only_reader() && in_.masked_by_producer)
      Plan::share(out_.value, in_.value);
    if (!in_.needs_gradient()) return;
    settle_after(out_, activation, slope);
    Plan::share(in_.gradients[plan.claim_gradient()], out_.gradients[0]);
  }

  void forward(const Run&) override {
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      run(out_.view().from(begin), in_.const_view().from(begin), end - begin, spec_);
    });
  }

 private:
  static void run(kernels::View to, kernels::ConstView from, std::size_t count, const op::LeakyRelu& spec) {
    kernels::leaky_relu(to, from, count, spec.slope);
  }
  static void run(kernels::View to, kernels::ConstView from, std::size_t count, const op::Tanh&) {
    kernels::tanh(to, from, count);
  }

  Spec spec_;
  Tensor& in_;
  Tensor& out_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::LeakyRelu& spec) {
  return std::make_unique<SmoothActivation<op::LeakyRelu>>(plan, spec, Activation::leaky_relu, spec.slope);
}

OperatorPtr make_operator(Plan& plan, const op::Tanh& spec) {
  return std::make_unique<SmoothActivation<op::Tanh>>(plan, spec, Activation::tanh, 0.0F);
}

}  // namespace dlrun::runtime
