// Average pooling over windows, by oneDNN. Whether the padding's zeros count in the mean is the model's
// choice; where the far edge is kept, the last windows are means of what is there.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::algorithm;
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;

class WindowAveragePool final : public Operator {
 public:
  WindowAveragePool(Plan& plan, const op::AveragePool& spec) {
    Tensor& in = plan.input();
    Tensor& out = plan.output();
    const algorithm kind = spec.counted == Padding::counts && spec.padding > 0
                               ? algorithm::pooling_avg_include_padding
                               : algorithm::pooling_avg_exclude_padding;
    const Dims strides{spec.stride, spec.stride}, window{spec.window, spec.window};
    const Dims near{spec.padding, spec.padding};
    const auto beyond = [&](std::int64_t from, std::int64_t to) {
      return std::max<std::int64_t>((to - 1) * spec.stride + spec.window - from - spec.padding, 0);
    };
    const Shape &from = plan.input_shape(), &to = plan.node().shape;
    const Dims far{beyond(from.height, to.height), beyond(from.width, to.width)};
    const Forward::primitive_desc desc(
        {dnnl::prop_kind::forward_training, kind, in.desc, out.desc, strides, window, near, far},
        attributes(), plan.engine());
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    const Backward::primitive_desc back(
        {kind, in.gradient_desc(), out.gradient_desc(), strides, window, near, far}, attributes(),
        plan.engine(), desc);
    backward_ =
        Call(Backward(back), {{DNNL_ARG_DIFF_DST, {out.gradient_desc(), out.gradients[0]}},
                              {DNNL_ARG_DIFF_SRC, {in.gradient_desc(), in.gradients[plan.claim_gradient()]}},
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

OperatorPtr make_operator(Plan& plan, const op::AveragePool& spec) {
  return std::make_unique<WindowAveragePool>(plan, spec);
}

}  // namespace dlrun::runtime
