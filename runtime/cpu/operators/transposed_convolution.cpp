// Transposed convolution: forward is the backward_data of the convolution that it turns round, backward_data
// is that one's forward, so all three passes are oneDNN's fast ones (its own deconvolution adds bias and
// activation in slow loops). The weights are that convolution's, (in, out, height, width), as PyTorch has
// them. Bias and activation are one pass over the output. A gradient of few channels is counted up to a whole
// block as in convolution.cpp.
#include "runtime/cpu/operators/plain_detour.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/whole_blocks.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Turned = dnnl::convolution_forward;
using TurnedWeights = dnnl::convolution_backward_weights;
using TurnedData = dnnl::convolution_backward_data;

class TransposedConvolution final : public Operator {
 public:
  TransposedConvolution(Plan& plan, const op::TransposedConvolution& spec)
      : spec_(spec),
        out_(plan.output()),
        strides_{spec.stride, spec.stride},
        padding_{spec.padding, spec.padding},
        dims_{plan.input_shape().channels, spec.filters, spec.kernel, spec.kernel} {
    settle_after(out_, spec.activation, spec.slope);
    const Extents& of = out_.extents;
    channels_ = {of.batch, of.outer, of.height * of.width, of.inner, spec.filters};
    const Tensor& in = plan.input();
    operations_ = plan.operations();
    // The types of the three passes differ where scores are f32, so each has a hint of its own.
    const auto forward_hint = turned(plan, out_.desc, in.desc);
    const auto backward_hint = fast_turned(plan);
    grad_.desc = *own(backward_hint.src_desc());
    if (out_.needs_gradient())
      grad_ = plan.source(out_.gradients[0], out_.gradient_desc(), grad_.desc, Pass::backward);
    weights_ = plan.parameter(".weight", *own(weights_desc(plan, backward_hint).diff_weights_desc()));
    if (spec_.bias == Bias::learned) bias_ = plan.parameter(".bias", vector_desc(spec_.filters));
    make_forward(plan, forward_hint);
    if (plan.node().weights != Weights::frozen) make_backward_weights(plan, backward_hint);
    if (in.needs_gradient())
      make_backward_data(plan, turned(plan, backward_hint.src_desc(), in.gradient_desc()));
  }

  void forward(const Run& run) override {
    forward_.run(run.stream);
    if (bias_ != nullptr) kernels::add_bias(out_.view(), bias_->value.floats(), channels_);
    if (spec_.activation == Activation::none) return;
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      activate(out_.view().from(begin), out_.const_view().from(begin), end - begin);
    });
  }
  void backward_weights(const Run& run) override {
    if (grad_.convert) grad_.convert.run(run.stream);
    if (!backward_weights_) return;
    backward_weights_.run(run.stream);
    if (bias_ != nullptr) kernels::bias_gradient(bias_gradient_->floats(), out_.const_gradient(), channels_);
  }
  void backward_data(const Run& run) override {
    if (!backward_data_) return;
    if (read_.convert) read_.convert.run(run.stream);
    backward_data_.run(run.stream);
    if (written_.deliver) written_.deliver.run(run.stream);
  }
  double operations() const override { return operations_; }
  std::string description() const override { return description_; }

 private:
  void activate(kernels::View to, kernels::ConstView from, std::size_t count) const {
    if (spec_.activation == Activation::tanh) return kernels::tanh(to, from, count);
    if (spec_.activation == Activation::relu) return kernels::relu(to, from, count);
    kernels::leaky_relu(to, from, count, spec_.slope);
  }

  // The weights where the output has as many channels as this.
  Desc weights_over(const Desc& output, DataType type) const {
    return any_layout({dims_[0], channels_of(output), dims_[2], dims_[3]}, type);
  }

  // Of the output or of weights that may be counted over whole blocks of channels, those that there are.
  std::optional<Desc> own(const Desc& desc) const { return with_channels(desc, spec_.filters); }

  // The convolution from the output to the input.
  Turned::primitive_desc turned(Plan& plan, const Desc& output, const Desc& input) const {
    return describe<Turned>(
        plan.engine(), attributes(), prop_kind::forward_training, algorithm::convolution_direct, output,
        weights_over(output, data_type(plan.options().precision)), input, strides_, padding_, padding_);
  }

  // From the output's gradient as it lies, unless only another layout of it is fast.
  Turned::primitive_desc fast_turned(Plan& plan) const {
    const Desc gradient = out_.gradient_desc(), input = plan.input().desc;
    auto as_it_lies = turned(plan, gradient, input);
    if (is_fast(plan, as_it_lies)) return as_it_lies;
    auto free = turned(plan, any_layout(dims_of(gradient), type_of(gradient)), input);
    if (is_fast(plan, free)) return free;
    auto whole = turned(plan, in_whole_blocks(dims_of(gradient), type_of(gradient), plan.layout()), input);
    if (is_fast(plan, whole)) return whole;
    return is_slow(as_it_lies) && !is_slow(free) ? free : as_it_lies;
  }

  bool is_fast(Plan& plan, const Turned::primitive_desc& hint) const {
    if (is_slow(hint) || !own(hint.weights_desc())) return false;
    const auto weights = weights_desc(plan, hint);
    if (!own(weights.diff_weights_desc())) return false;
    return plan.node().weights == Weights::frozen || !is_slow(weights);
  }

  TurnedWeights::primitive_desc weights_desc(Plan& plan, const Turned::primitive_desc& hint) const {
    const Desc gradient = hint.src_desc();
    return describe_backward<TurnedWeights>(plan.engine(), hint, algorithm::convolution_direct, gradient,
                                            weights_over(gradient, DataType::f32), plan.input().desc,
                                            strides_, padding_, padding_);
  }

  void make_forward(Plan& plan, const Turned::primitive_desc& hint) {
    const Tensor& in = plan.input();
    const auto desc = describe_backward<TurnedData>(
        plan.engine(), hint, algorithm::convolution_direct, out_.desc,
        any_layout(dims_, data_type(plan.options().precision)), in.desc, strides_, padding_, padding_);
    forward_ =
        Call(TurnedData(desc),
             {{DNNL_ARG_DIFF_SRC, {out_.desc, out_.value}},
              {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
              {DNNL_ARG_DIFF_DST, {in.desc, in.value}},
              plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    description_ = desc.impl_info_str();
  }

  void make_backward_weights(Plan& plan, const Turned::primitive_desc& hint) {
    const Tensor& in = plan.input();
    const auto desc = weights_desc(plan, hint);
    plan.use(in.value, Pass::backward);
    Buffer* gradient = plan.gradient_of(weights_, *own(desc.diff_weights_desc()));
    backward_weights_ =
        Call(TurnedWeights(desc), {{DNNL_ARG_SRC, {desc.src_desc(), grad_.buffer}},
                                   {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), in.value}},
                                   {DNNL_ARG_DIFF_WEIGHTS, {desc.diff_weights_desc(), gradient}},
                                   plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    if (bias_ != nullptr) bias_gradient_ = plan.gradient_of(bias_, bias_->layout);
    description_ += std::string(", ") + desc.impl_info_str();
  }

  // In plain copies where only they are fast.
  Turned::primitive_desc detour(Plan& plan, const Turned::primitive_desc& direct) const {
    if (!is_slow(direct)) return direct;
    auto plain = turned(plan, side_by_side(direct.src_desc()), side_by_side(direct.dst_desc()));
    return is_slow(plain) ? direct : plain;
  }

  void make_backward_data(Plan& plan, const Turned::primitive_desc& direct) {
    const Tensor& in = plan.input();
    const auto desc = detour(plan, direct);
    read_ = plan.source(grad_.buffer, direct.src_desc(), desc.src_desc(), Pass::backward);
    written_ = target(plan, in.gradients[plan.claim_gradient()], in.gradient_desc(), desc.dst_desc(),
                      Pass::backward);
    Buffer* weights = plan.parameters().as(weights_, *own(desc.weights_desc()));
    backward_data_ = Call(Turned(desc), {{DNNL_ARG_SRC, {desc.src_desc(), read_.buffer}},
                                         {DNNL_ARG_WEIGHTS, {desc.weights_desc(), weights}},
                                         {DNNL_ARG_DST, {desc.dst_desc(), written_.buffer}},
                                         plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    description_ += std::string(", ") + desc.impl_info_str();
  }

  op::TransposedConvolution spec_;
  Tensor& out_;
  Dims strides_, padding_, dims_;
  kernels::ChannelShape channels_{};
  Source grad_;     // the output's gradient, as backward reads it ...
  Source read_;     // ... but that backward_data may take a detour
  Target written_;  // by backward_data
  Parameter* weights_ = nullptr;
  Parameter* bias_ = nullptr;
  Buffer* bias_gradient_ = nullptr;
  Call forward_, backward_weights_, backward_data_;
  double operations_ = 0;
  std::string description_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::TransposedConvolution& spec) {
  return std::make_unique<TransposedConvolution>(plan, spec);
}

}  // namespace dlrun::runtime
