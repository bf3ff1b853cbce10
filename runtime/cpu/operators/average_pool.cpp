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
    const std::size_t sides = dims_of(in.desc).size() - 2;
    const Dims strides(sides, spec.stride), window(sides, spec.window), near(sides, spec.padding);
    const auto beyond = [&](std::int64_t from, std::int64_t to) {
      return std::max<std::int64_t>((to - 1) * spec.stride + spec.window - from - spec.padding, 0);
    };
    const Shape &from = plan.input_shape(), &to = plan.node().shape;
    Dims far{beyond(from.height, to.height), beyond(from.width, to.width)};
    if (from.axes == Axes::volume) far.insert(far.begin(), beyond(from.depth, to.depth));
    const Windows windows{kind, strides, window, near, far};
    const auto desc = describe_forward(plan, windows);
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {out.desc, out.value}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    if (!in.needs_gradient()) return;
    const auto back = describe_backward_data(plan, windows, desc);
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
  struct Windows {
    algorithm kind;
    Dims strides, window, near, far;
  };
  // Version 3 has windows with holes as well: ours have none.
  static Forward::primitive_desc describe_forward(Plan& plan, const Windows& of) {
    const Desc &in = plan.input().desc, &out = plan.output().desc;
#if DNNL_VERSION_MAJOR == 2
    return describe<Forward>(plan.engine(), attributes(), dnnl::prop_kind::forward_training, of.kind, in, out,
                             of.strides, of.window, of.near, of.far);
#else
    return describe<Forward>(plan.engine(), attributes(), dnnl::prop_kind::forward_training, of.kind, in, out,
                             of.strides, of.window, Dims(of.window.size(), 0), of.near, of.far);
#endif
  }
  static Backward::primitive_desc describe_backward_data(Plan& plan, const Windows& of,
                                                         const Forward::primitive_desc& hint) {
    const Desc in = plan.input().gradient_desc(), out = plan.output().gradient_desc();
#if DNNL_VERSION_MAJOR == 2
    return describe_backward<Backward>(plan.engine(), hint, of.kind, in, out, of.strides, of.window, of.near,
                                       of.far);
#else
    return describe_backward<Backward>(plan.engine(), hint, of.kind, in, out, of.strides, of.window,
                                       Dims(of.window.size(), 0), of.near, of.far);
#endif
  }

  Call forward_, backward_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::AveragePool& spec) {
  return std::make_unique<WindowAveragePool>(plan, spec);
}

}  // namespace dlrun::runtime
