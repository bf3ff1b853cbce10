// Local response normalization across channels, by oneDNN; its formula divides alpha by the window, as
// PyTorch's does.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using Forward = dnnl::lrn_forward;
using Backward = dnnl::lrn_backward;
constexpr auto kAcross = dnnl::algorithm::lrn_across_channels;

class LocalResponseNorm final : public Operator {
 public:
  LocalResponseNorm(Plan& plan, const op::LocalResponseNorm& spec) {
    Tensor& in = plan.input();
    Tensor& out = plan.output();
    const Forward::primitive_desc desc(
        {dnnl::prop_kind::forward_training, kAcross, in.desc, spec.size, spec.alpha, spec.beta, spec.bias},
        attributes(), plan.engine());
    Buffer* sums = plan.buffer(desc.workspace_desc().get_size());
    plan.use(sums, Pass::forward);
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    {DNNL_ARG_WORKSPACE, {desc.workspace_desc(), sums}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    plan.use(sums, Pass::backward);
    plan.use(in.value, Pass::backward);
    const Backward::primitive_desc back(
        {kAcross, in.desc, out.gradient_desc(), spec.size, spec.alpha, spec.beta, spec.bias}, attributes(),
        plan.engine(), desc);
    backward_ =
        Call(Backward(back), {{DNNL_ARG_SRC, {in.desc, in.value}},
                              {DNNL_ARG_DIFF_DST, {out.gradient_desc(), out.gradients[0]}},
                              {DNNL_ARG_DIFF_SRC, {in.gradient_desc(), in.gradients[plan.claim_gradient()]}},
                              {DNNL_ARG_WORKSPACE, {desc.workspace_desc(), sums}},
                              plan.scratchpad(back.scratchpad_desc(), Pass::backward)});
  }

  void forward(const Run& run) override { forward_.run(run.stream); }
  void backward_data(const Run& run) override {
    if (backward_) backward_.run(run.stream);
  }

 private:
  Call forward_, backward_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::LocalResponseNorm& spec) {
  return std::make_unique<LocalResponseNorm>(plan, spec);
}

}  // namespace dlrun::runtime
