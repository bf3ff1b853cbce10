// GELU, by oneDNN. Backward reads the input, so its value stays.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using Forward = dnnl::eltwise_forward;
using Backward = dnnl::eltwise_backward;

dnnl::algorithm algorithm_of(const op::Gelu& spec) {
  return spec.form == op::Gelu::Form::erf ? dnnl::algorithm::eltwise_gelu_erf
                                          : dnnl::algorithm::eltwise_gelu_tanh;
}

class Gelu final : public Operator {
 public:
  Gelu(Plan& plan, const op::Gelu& spec) {
    Tensor &in = plan.input(), &out = plan.output();
    plan.set_layout(out, in.desc, in.precision, in.extents);
    const auto desc = describe_forward(plan, algorithm_of(spec));
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    plan.use(in.value, Pass::backward);
    const auto back = describe_backward_data(plan, algorithm_of(spec), desc);
    backward_ =
        Call(Backward(back), {{DNNL_ARG_SRC, {in.desc, in.value}},
                              {DNNL_ARG_DIFF_DST, {out.gradient_desc(), out.gradients[0]}},
                              {DNNL_ARG_DIFF_SRC, {in.gradient_desc(), in.gradients[plan.claim_gradient()]}},
                              plan.scratchpad(back.scratchpad_desc(), Pass::backward)});
  }

  void forward(const Run& run) override { forward_.run(run.stream); }
  void backward_data(const Run& run) override {
    if (backward_) backward_.run(run.stream);
  }

 private:
  // Version 3 asks for source and target where version 2 has one layout for both.
  static Forward::primitive_desc describe_forward(Plan& plan, dnnl::algorithm algorithm) {
    constexpr auto kTraining = dnnl::prop_kind::forward_training;
    const Desc& source = plan.input().desc;
#if DNNL_VERSION_MAJOR == 2
    return describe<Forward>(plan.engine(), attributes(), kTraining, algorithm, source, 0.0F, 0.0F);
#else
    return describe<Forward>(plan.engine(), attributes(), kTraining, algorithm, source, source, 0.0F, 0.0F);
#endif
  }
  static Backward::primitive_desc describe_backward_data(Plan& plan, dnnl::algorithm algorithm,
                                                         const Forward::primitive_desc& hint) {
    const Desc& source = plan.input().desc;
    const Desc gradient = plan.output().gradient_desc();
#if DNNL_VERSION_MAJOR == 2
    return describe_backward<Backward>(plan.engine(), hint, algorithm, gradient, source, 0.0F, 0.0F);
#else
    return describe_backward<Backward>(plan.engine(), hint, algorithm, gradient, gradient, source, 0.0F,
                                       0.0F);
#endif
  }

  Call forward_, backward_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Gelu& spec) {
  return std::make_unique<Gelu>(plan, spec);
}

}  // namespace dlrun::runtime
