// Linear: an inner product of oneDNN over batch x positions rows, with a bias or without one. The weights lie
// as oneDNN likes to write their gradient; what else it likes to read are copies (parameters.hpp).
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::prop_kind;
using Forward = dnnl::inner_product_forward;
using BackwardWeights = dnnl::inner_product_backward_weights;
using BackwardData = dnnl::inner_product_backward_data;

class Linear final : public Operator {
 public:
  Linear(Plan& plan, const op::Linear& spec)
      : inputs_(plan.input_shape().features()), outputs_(spec.outputs), operations_(plan.operations()) {
    const Bias added = plan.adds_whole_terms() ? spec.bias : Bias::none;
    const Forward::primitive_desc forward = describe_forward(plan, added);
    const BackwardWeights::primitive_desc weights = describe_weights(plan, forward, spec.bias);
    plan.output().gradient_only_read = plan.output().value_not_read = true;
    weights_ = plan.parameter(".weight", weights.diff_weights_desc());
    if (spec.bias == Bias::learned) bias_ = plan.parameter(".bias", vector_desc(outputs_));
    make_forward(plan, forward, added);
    if (plan.node().weights != Weights::frozen) make_backward_weights(plan, weights);
    if (plan.input().needs_gradient()) make_backward_data(plan, forward);
  }

  void forward(const Run& run) override { forward_.run(run.stream); }
  void backward_weights(const Run& run) override {
    if (backward_weights_) backward_weights_.run(run.stream);
  }
  void backward_data(const Run& run) override {
    if (backward_data_) backward_data_.run(run.stream);
  }
  double operations() const override { return operations_; }
  std::string description() const override { return description_; }

 private:
  Desc any_weights(DataType type) const { return any_layout({outputs_, inputs_}, type); }

  Forward::primitive_desc describe_forward(Plan& plan, Bias bias) const {
    const Desc &source = plan.input().desc, &target = plan.output().desc;
    constexpr auto kTraining = prop_kind::forward_training;
    if (bias == Bias::none)
      return describe<Forward>(plan.engine(), attributes(), kTraining, source, any_weights(type_of(source)),
                               target);
    return describe<Forward>(plan.engine(), attributes(), kTraining, source, any_weights(type_of(source)),
                             vector_desc(outputs_), target);
  }

  BackwardWeights::primitive_desc describe_weights(Plan& plan, const Forward::primitive_desc& hint,
                                                   Bias bias) const {
    const Desc &source = plan.input().desc, grad = plan.output().gradient_desc();
    if (bias == Bias::none)
      return describe_backward<BackwardWeights>(plan.engine(), hint, source, any_weights(DataType::f32),
                                                grad);
    return describe_backward<BackwardWeights>(plan.engine(), hint, source, any_weights(DataType::f32),
                                              vector_desc(outputs_), grad);
  }

  void make_forward(Plan& plan, const Forward::primitive_desc& desc, Bias added) {
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, {plan.input().desc, plan.input().value}},
        {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
        {DNNL_ARG_DST, {desc.dst_desc(), plan.output().value}},
        plan.scratchpad(desc.scratchpad_desc(), Pass::forward)};
    if (added == Bias::learned) arguments.push_back({DNNL_ARG_BIAS, {bias_->layout, &bias_->value}});
    forward_ = Call(Forward(desc), std::move(arguments));
    description_ = desc.impl_info_str();
  }

  void make_backward_weights(Plan& plan, const BackwardWeights::primitive_desc& desc) {
    Buffer* const source = plan.input().value_in_backward();
    plan.use(source, Pass::backward);
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, {plan.input().desc, source}},
        {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
        {DNNL_ARG_DIFF_WEIGHTS,
         {desc.diff_weights_desc(), plan.gradient_of(weights_, desc.diff_weights_desc())}},
        plan.scratchpad(desc.scratchpad_desc(), Pass::backward)};
    if (bias_ != nullptr)
      arguments.push_back({DNNL_ARG_DIFF_BIAS, {bias_->layout, plan.gradient_of(bias_, bias_->layout)}});
    backward_weights_ = Call(BackwardWeights(desc), std::move(arguments));
    description_ += std::string(", ") + desc.impl_info_str();
  }

  void make_backward_data(Plan& plan, const Forward::primitive_desc& hint) {
    Tensor& in = plan.input();
    const auto desc = describe_backward<BackwardData>(plan.engine(), hint, in.gradient_desc(),
                                                      any_weights(type_of(in.gradient_desc())),
                                                      plan.output().gradient_desc());
    Buffer* gradient = in.gradients[plan.claim_gradient()];
    backward_data_ =
        Call(BackwardData(desc),
             {{DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
              {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
              {DNNL_ARG_DIFF_SRC, {desc.diff_src_desc(), gradient}},
              plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    description_ += std::string(", ") + desc.impl_info_str();
  }

  std::int64_t inputs_, outputs_;
  double operations_;
  Parameter* weights_ = nullptr;
  Parameter* bias_ = nullptr;
  Call forward_, backward_weights_, backward_data_;
  std::string description_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Linear& spec) {
  return std::make_unique<Linear>(plan, spec);
}

}  // namespace dlrun::runtime
