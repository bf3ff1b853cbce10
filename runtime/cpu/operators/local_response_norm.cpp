// Local response normalization across channels, by oneDNN; its formula divides alpha by the window, as
// PyTorch's does.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using Forward = dnnl::lrn_forward;
using Backward = dnnl::lrn_backward;
constexpr auto kAcross = dnnl::algorithm::lrn_across_channels;
constexpr auto kTraining = dnnl::prop_kind::forward_training;

class LocalResponseNorm final : public Operator {
 public:
  LocalResponseNorm(Plan& plan, const op::LocalResponseNorm& spec) {
    Tensor& in = plan.input();
    Tensor& out = plan.output();
    const auto desc = describe_forward(plan, spec);
    Buffer* sums = plan.buffer(desc.workspace_desc().get_size());
    plan.use(sums, Pass::forward);
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    {DNNL_ARG_WORKSPACE, {desc.workspace_desc(), sums}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    plan.use(sums, Pass::backward);
    plan.use(in.value, Pass::backward);
    const auto back = describe_backward_data(plan, spec, desc);
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
  // Version 3 asks for source and target where version 2 has one layout for both.
  static Forward::primitive_desc describe_forward(Plan& plan, const op::LocalResponseNorm& spec) {
    const Desc& source = plan.input().desc;
#if DNNL_VERSION_MAJOR == 2
    return describe<Forward>(plan.engine(), attributes(), kTraining, kAcross, source, spec.size, spec.alpha,
                             spec.beta, spec.bias);
#else
    return describe<Forward>(plan.engine(), attributes(), kTraining, kAcross, source, source, spec.size,
                             spec.alpha, spec.beta, spec.bias);
#endif
  }
  static Backward::primitive_desc describe_backward_data(Plan& plan, const op::LocalResponseNorm& spec,
                                                         const Forward::primitive_desc& hint) {
    const Desc& source = plan.input().desc;
    const Desc gradient = plan.output().gradient_desc();
#if DNNL_VERSION_MAJOR == 2
    return describe_backward<Backward>(plan.engine(), hint, kAcross, source, gradient, spec.size, spec.alpha,
                                       spec.beta, spec.bias);
#else
    return describe_backward<Backward>(plan.engine(), hint, kAcross, gradient, gradient, source, spec.size,
                                       spec.alpha, spec.beta, spec.bias);
#endif
  }

  Call forward_, backward_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::LocalResponseNorm& spec) {
  return std::make_unique<LocalResponseNorm>(plan, spec);
}

}  // namespace dlrun::runtime
