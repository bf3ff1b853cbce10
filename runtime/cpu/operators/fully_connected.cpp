// Fully connected layer with bias and fused ReLU. It reads an image as a vector in whatever layout the image
// lies, and keeps the columns of its weights in that order, so nothing is moved at run time; only named state
// is in the plain order (channels, height, width). Scores for the loss are written in f32.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::prop_kind;
using Forward = dnnl::inner_product_forward;
using BackwardWeights = dnnl::inner_product_backward_weights;
using BackwardData = dnnl::inner_product_backward_data;

class FullyConnected final : public Operator {
 public:
  FullyConnected(Plan& plan, const op::FullyConnected& spec)
      : inputs_(static_cast<std::int64_t>(plan.input().elements) / plan.batch()), outputs_(spec.outputs) {
    Tensor& in = plan.input();
    Tensor& out = plan.output();
    const DataType type = data_type(plan.options().precision);
    const Precision out_precision = feeds_loss(plan) ? Precision::f32 : plan.options().precision;
    plan.set_layout(out, Desc({plan.batch(), outputs_}, data_type(out_precision), Tag::nc), out_precision,
                    {plan.batch(), 1, 1, 1, outputs_});
    set_activation_backward(out, spec.activation, 0);
    source_ = Desc({plan.batch(), inputs_}, type, Tag::nc);

    const Bias added = plan.adds_whole_terms() ? Bias::learned : Bias::none;
    const Forward::primitive_desc forward = describe_forward(plan, spec.activation, added);
    const auto weights = describe_backward<BackwardWeights>(plan.engine(), forward, source_,
                                                            any_layout({outputs_, inputs_}, DataType::f32),
                                                            vector_desc(outputs_), out.gradient_desc());
    out.gradient_only_read = true;
    operations_ = plan.operations();
    weights_ = plan.parameter(".weight", weights.diff_weights_desc(), columns(plan));
    bias_ = plan.parameter(".bias", vector_desc(outputs_));
    make_forward(plan, forward, added);
    if (plan.node().weights != Weights::frozen) make_backward_weights(plan, weights);
    if (in.needs_gradient()) make_backward_data(plan, forward);
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
  static bool feeds_loss(Plan& plan) {
    for (const std::size_t reader : plan.readers_of_output())
      if (is_loss(plan.graph().nodes[reader])) return true;
    return false;
  }

  // A row of the weights is an image in the input's layout.
  std::optional<Desc> columns(Plan& plan) const {
    if (dims_of(plan.input().desc).size() == 2) return std::nullopt;
    return activation_desc(outputs_, plan.input_shape(), DataType::f32, plan.layout());
  }

  Forward::primitive_desc describe_forward(Plan& plan, Activation activation, Bias added) const {
    const Desc weights = any_layout({outputs_, inputs_}, type_of(source_)), &to = plan.output().desc;
    constexpr auto kTraining = prop_kind::forward_training;
    if (added == Bias::none)
      return describe<Forward>(plan.engine(), attributes(activation), kTraining, source_, weights, to);
    return describe<Forward>(plan.engine(), attributes(activation), kTraining, source_, weights,
                             vector_desc(outputs_), to);
  }

  void make_forward(Plan& plan, const Forward::primitive_desc& desc, Bias added) {
    std::vector<Call::Argument> arguments{
        {DNNL_ARG_SRC, {source_, plan.input().value}},
        {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
        {DNNL_ARG_DST, {desc.dst_desc(), plan.output().value}},
        plan.scratchpad(desc.scratchpad_desc(), Pass::forward)};
    if (added == Bias::learned) arguments.push_back({DNNL_ARG_BIAS, {bias_->layout, &bias_->value}});
    forward_ = Call(Forward(desc), std::move(arguments));
    description_ = desc.impl_info_str();
  }

  void make_backward_weights(Plan& plan, const BackwardWeights::primitive_desc& desc) {
    plan.use(plan.input().value, Pass::backward);
    backward_weights_ =
        Call(BackwardWeights(desc),
             {{DNNL_ARG_SRC, {source_, plan.input().value}},
              {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
              {DNNL_ARG_DIFF_WEIGHTS,
               {desc.diff_weights_desc(), plan.gradient_of(weights_, desc.diff_weights_desc())}},
              {DNNL_ARG_DIFF_BIAS, {bias_->layout, plan.gradient_of(bias_, bias_->layout)}},
              plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    description_ += std::string(", ") + desc.impl_info_str();
  }

  void make_backward_data(Plan& plan, const Forward::primitive_desc& hint) {
    const auto desc = describe_backward<BackwardData>(plan.engine(), hint, source_,
                                                      any_layout({outputs_, inputs_}, type_of(source_)),
                                                      plan.output().gradient_desc());
    Buffer* gradient = plan.input().gradients[plan.claim_gradient()];
    backward_data_ =
        Call(BackwardData(desc),
             {{DNNL_ARG_DIFF_SRC, {source_, gradient}},
              {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
              {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
              plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    description_ += std::string(", ") + desc.impl_info_str();
  }

  std::int64_t inputs_, outputs_;  // inputs with the padding of their layout
  Desc source_;
  Parameter* weights_ = nullptr;
  Parameter* bias_ = nullptr;
  Call forward_, backward_weights_, backward_data_;
  double operations_ = 0;
  std::string description_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::FullyConnected& spec) {
  return std::make_unique<FullyConnected>(plan, spec);
}

}  // namespace dlrun::runtime
