// GELU: exact by oneDNN, by tanh by an own kernel. Backward reads the input, so its value stays.
#include "runtime/cpu/kernels/gelu.hpp"

#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using Forward = dnnl::eltwise_forward;
using Backward = dnnl::eltwise_backward;

constexpr auto kExact = dnnl::algorithm::eltwise_gelu_erf;

class ExactGelu final : public Operator {
 public:
  explicit ExactGelu(Plan& plan) {
    Tensor &in = plan.input(), &out = plan.output();
    plan.set_layout(out, in.desc, in.precision, in.extents);
    const auto desc = describe_forward(plan);
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    plan.use(in.value, Pass::backward);
    const auto back = describe_backward_data(plan, desc);
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
  static Forward::primitive_desc describe_forward(Plan& plan) {
    constexpr auto kTraining = dnnl::prop_kind::forward_training;
    const Desc& source = plan.input().desc;
#if DNNL_VERSION_MAJOR == 2
    return describe<Forward>(plan.engine(), attributes(), kTraining, kExact, source, 0.0F, 0.0F);
#else
    return describe<Forward>(plan.engine(), attributes(), kTraining, kExact, source, source, 0.0F, 0.0F);
#endif
  }
  static Backward::primitive_desc describe_backward_data(Plan& plan, const Forward::primitive_desc& hint) {
    const Desc& source = plan.input().desc;
    const Desc gradient = plan.output().gradient_desc();
#if DNNL_VERSION_MAJOR == 2
    return describe_backward<Backward>(plan.engine(), hint, kExact, gradient, source, 0.0F, 0.0F);
#else
    return describe_backward<Backward>(plan.engine(), hint, kExact, gradient, gradient, source, 0.0F, 0.0F);
#endif
  }

  Call forward_, backward_;
};

class GeluByTanh final : public Operator {
 public:
  explicit GeluByTanh(Plan& plan) : in_(plan.input()), out_(plan.output()) {
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    out_.gradient_only_read = out_.value_not_read = true;
    if (!in_.needs_gradient()) return;
    plan.use(in_.value, Pass::backward);
    gradient_ = in_.gradients[plan.claim_gradient()];
  }

  void forward(const Run&) override {
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      kernels::gelu_by_tanh(out_.view().from(begin), in_.const_view().from(begin), end - begin);
    });
  }
  void backward_data(const Run&) override {
    if (gradient_ == nullptr) return;
    const kernels::View to{gradient_->data, in_.gradient_precision};
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      kernels::gelu_by_tanh_backward(to.from(begin), out_.const_gradient().from(begin),
                                     in_.const_view().from(begin), end - begin);
    });
  }

 private:
  Tensor& in_;
  Tensor& out_;
  Buffer* gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Gelu& spec) {
  if (spec.form == op::Gelu::Form::tanh) return std::make_unique<GeluByTanh>(plan);
  return std::make_unique<ExactGelu>(plan);
}

}  // namespace dlrun::runtime
