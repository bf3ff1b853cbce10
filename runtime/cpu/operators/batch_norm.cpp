// Batch normalization with a learned scale (weight) and shift (bias) and fused ReLU. Training uses the
// batch's own mean and variance and moves the running ones towards them (the running variance is the unbiased
// one, as PyTorch has it); evaluation uses the running ones. oneDNN gives all gradients in one call.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::normalization_flags;
using dnnl::prop_kind;
using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

class BatchNorm final : public Operator {
 public:
  BatchNorm(Plan& plan, const op::BatchNorm& spec)
      : spec_(spec), frozen_(plan.node().weights == Weights::frozen), channels_(plan.node().shape.channels) {
    rows_ = plan.batch() * plan.node().shape.elements() / channels_;
    plan.set_layout(plan.output(), plan.input().desc, plan.input().precision, plan.input().extents);
    plan.output().gradient_only_read = plan.output().value_not_read = true;
    declare_parameters(plan);
    make_forward(plan);
    make_evaluation(plan);
  }

  void forward(const Run& run) override {
    if (run.mode == Mode::evaluate) return evaluation_.run(run.stream);
    forward_.run(run.stream);
    if (frozen_ || run.statistics == RunningStatistics::stay) return;
    const float momentum = spec_.momentum;
    const float unbiased = rows_ > 1 ? static_cast<float>(rows_) / static_cast<float>(rows_ - 1) : 1.0F;
    for (std::int64_t channel = 0; channel < channels_; ++channel) {
      float& mean = running_mean_->value.floats()[channel];
      float& variance = running_variance_->value.floats()[channel];
      mean += momentum * (mean_->floats()[channel] - mean);
      variance += momentum * (unbiased * variance_->floats()[channel] - variance);
    }
  }
  void backward_weights(const Run& run) override { backward_.run(run.stream); }
  double operations() const override { return 10.0 * static_cast<double>(rows_ * channels_); }
  std::string description() const override { return description_; }

 private:
  void declare_parameters(Plan& plan) {
    weight_ = plan.parameter(".weight", vector_desc(channels_));
    bias_ = plan.parameter(".bias", vector_desc(channels_));
    running_mean_ = plan.statistic(".running_mean");
    running_variance_ = plan.statistic(".running_var");
    for (Buffer** buffer : {&mean_, &variance_}) {
      *buffer = plan.buffer(static_cast<std::size_t>(channels_) * sizeof(float));
      plan.use(*buffer, Pass::forward);
      plan.use(*buffer, Pass::backward);
    }
  }

  normalization_flags flags() const {
    const auto affine = normalization_flags::use_scale | normalization_flags::use_shift;
    return spec_.activation == Activation::relu ? affine | normalization_flags::fuse_norm_relu : affine;
  }

  // Version 3 asks for source and target where version 2 has one layout for both.
  Forward::primitive_desc describe_forward(Plan& plan, prop_kind kind, normalization_flags flags) const {
    const Desc& source = plan.input().desc;
#if DNNL_VERSION_MAJOR == 2
    return describe<Forward>(plan.engine(), attributes(), kind, source, spec_.epsilon, flags);
#else
    return describe<Forward>(plan.engine(), attributes(), kind, source, source, spec_.epsilon, flags);
#endif
  }
  Backward::primitive_desc describe_gradients(Plan& plan, const Forward::primitive_desc& hint) const {
    const Desc& source = plan.input().desc;
    const Desc gradient = plan.output().gradient_desc();
#if DNNL_VERSION_MAJOR == 2
    return describe_backward<Backward>(plan.engine(), hint, prop_kind::backward, gradient, source,
                                       spec_.epsilon, flags());
#else
    return describe_backward<Backward>(plan.engine(), hint, prop_kind::backward, gradient, gradient, source,
                                       spec_.epsilon, flags());
#endif
  }

  void make_forward(Plan& plan) {
    Tensor& in = plan.input();
    const auto desc = describe_forward(plan, prop_kind::forward_training, flags());
    const Desc statistics = vector_desc(channels_);
    Buffer* signs = plan.buffer(desc.workspace_desc().get_size());  // of the fused ReLU
    plan.use(signs, Pass::forward);
    plan.use(signs, Pass::backward);
    forward_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                    {DNNL_ARG_DST, {in.desc, plan.output().value}},
                                    {DNNL_ARG_SCALE, {statistics, &weight_->value}},
                                    {DNNL_ARG_SHIFT, {statistics, &bias_->value}},
                                    {DNNL_ARG_MEAN, {statistics, mean_}},
                                    {DNNL_ARG_VARIANCE, {statistics, variance_}},
                                    {DNNL_ARG_WORKSPACE, {desc.workspace_desc(), signs}},
                                    plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
    description_ = desc.impl_info_str();
    make_backward(plan, desc, signs);
  }

  void make_backward(Plan& plan, const Forward::primitive_desc& hint, Buffer* signs) {
    Tensor& in = plan.input();
    const Desc gradient_desc = plan.output().gradient_desc();
    const auto desc = describe_gradients(plan, hint);
    const Desc statistics = vector_desc(channels_);
    Buffer* gradient = in.needs_gradient() ? in.gradients[plan.claim_gradient()]
                                           : plan.scratch(gradient_desc.get_size(), Pass::backward);
    plan.use(in.value, Pass::backward);
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, {in.desc, in.value}},
        {DNNL_ARG_DIFF_DST, {gradient_desc, plan.output().gradients[0]}},
        {DNNL_ARG_DIFF_SRC, {gradient_desc, gradient}},
        {DNNL_ARG_SCALE, {statistics, &weight_->value}},
        {DNNL_ARG_DIFF_SCALE, {statistics, plan.gradient_of(weight_, statistics)}},
        {DNNL_ARG_DIFF_SHIFT, {statistics, plan.gradient_of(bias_, statistics)}},
        {DNNL_ARG_MEAN, {statistics, mean_}},
        {DNNL_ARG_VARIANCE, {statistics, variance_}},
        {DNNL_ARG_WORKSPACE, {hint.workspace_desc(), signs}},
        plan.scratchpad(desc.scratchpad_desc(), Pass::backward)};
    // Version 2 counts the shift among the inputs; version 3 refuses it as one too many.
    if (DNNL_VERSION_MAJOR == 2) arguments.push_back({DNNL_ARG_SHIFT, {statistics, &bias_->value}});
    backward_ = Call(Backward(desc), std::move(arguments));
    description_ += std::string(", ") + desc.impl_info_str();
  }

  void make_evaluation(Plan& plan) {
    Tensor& in = plan.input();
    const auto desc =
        describe_forward(plan, prop_kind::forward_inference, flags() | normalization_flags::use_global_stats);
    const Desc statistics = vector_desc(channels_);
    evaluation_ = Call(Forward(desc), {{DNNL_ARG_SRC, {in.desc, in.value}},
                                       {DNNL_ARG_DST, {in.desc, plan.output().value}},
                                       {DNNL_ARG_SCALE, {statistics, &weight_->value}},
                                       {DNNL_ARG_SHIFT, {statistics, &bias_->value}},
                                       {DNNL_ARG_MEAN, {statistics, &running_mean_->value}},
                                       {DNNL_ARG_VARIANCE, {statistics, &running_variance_->value}},
                                       plan.scratchpad(desc.scratchpad_desc(), Pass::forward)});
  }

  op::BatchNorm spec_;
  bool frozen_;
  std::int64_t channels_, rows_ = 0;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  Statistic* running_mean_ = nullptr;
  Statistic* running_variance_ = nullptr;
  Buffer* mean_ = nullptr;
  Buffer* variance_ = nullptr;
  Call forward_, backward_, evaluation_;
  std::string description_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::BatchNorm& spec) {
  return std::make_unique<BatchNorm>(plan, spec);
}

}  // namespace dlrun::runtime
