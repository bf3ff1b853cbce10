// Convolution with an optional bias and a fused activation. The weights lie in the arena as backward_weights
// writes them; forward and backward_data read copies where they want another layout. Few channels are fast in
// a plain layout up to 3, and from 4 on where forward and backward_weights count them up to a whole block;
// the parameter keeps its own number.
#include "runtime/cpu/kernels/weight_products.hpp"
#include "runtime/cpu/operators/plain_detour.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/cpu/whole_blocks.hpp"

namespace dlrun::runtime {

namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using Forward = dnnl::convolution_forward;
using BackwardWeights = dnnl::convolution_backward_weights;
using BackwardData = dnnl::convolution_backward_data;

struct Geometry {
  Dims strides, padding;
  // Of images or, with an axis more, of volumes.
  Geometry(const op::Convolution& spec, std::size_t dims)
      : strides(dims - 2, spec.stride), padding(dims - 2, spec.padding) {
    padding.back() = spec.padding_width;
  }
};

// What oneDNN calls the weights: with an axis for the groups where there are some.
Dims weight_dims(const op::Convolution& spec, std::int64_t channels, std::size_t dims) {
  const std::int64_t groups = spec.groups;
  Dims out{spec.filters / groups, channels / groups};
  if (groups != 1) out.insert(out.begin(), groups);
  for (std::size_t axis = 3; axis < dims; ++axis) out.push_back(spec.kernel);
  out.push_back(spec.kernel_width);
  return out;
}

Forward::primitive_desc forward_desc(Plan& plan, const op::Convolution& spec, const Desc& source,
                                     const Desc& target) {
  const std::size_t dims = dims_of(source).size();
  const Geometry geometry(spec, dims);
  const Desc weights =
      any_layout(weight_dims(spec, channels_of(source), dims), data_type(plan.options().precision));
  const auto attribute = attributes(spec.activation, spec.slope);
  if (spec.bias == Bias::none)
    return describe<Forward>(plan.engine(), attribute, prop_kind::forward_training,
                             algorithm::convolution_direct, source, weights, target, geometry.strides,
                             geometry.padding, geometry.padding);
  return describe<Forward>(plan.engine(), attribute, prop_kind::forward_training,
                           algorithm::convolution_direct, source, weights, vector_desc(spec.filters), target,
                           geometry.strides, geometry.padding, geometry.padding);
}

BackwardWeights::primitive_desc weights_desc(Plan& plan, const op::Convolution& spec, const Desc& source,
                                             const Desc& gradient, const Forward::primitive_desc& hint) {
  const std::size_t dims = dims_of(source).size();
  const Geometry geometry(spec, dims);
  const Desc weights = any_layout(weight_dims(spec, channels_of(source), dims), DataType::f32);
  if (spec.bias == Bias::none)
    return describe_backward<BackwardWeights>(plan.engine(), hint, algorithm::convolution_direct, source,
                                              weights, gradient, geometry.strides, geometry.padding,
                                              geometry.padding);
  return describe_backward<BackwardWeights>(plan.engine(), hint, algorithm::convolution_direct, source,
                                            weights, vector_desc(spec.filters), gradient, geometry.strides,
                                            geometry.padding, geometry.padding);
}

// The weights' blocks as the products write them, where there are any for these activations.
std::optional<Desc> blocks_of_products(const Dims& weights, const kernels::WeightShape& shape) {
  const std::int64_t inner = shape.source.inner;
  if (inner != shape.grad.inner || (inner != 8 && inner != 16)) return std::nullopt;
  if (weights[0] % inner != 0 || weights[1] % inner != 0) return std::nullopt;
  return Desc(weights, DataType::f32, inner == 16 ? Tag::ABcd16b16a : Tag::ABcd8b8a);
}

// The gradient of the weights by kernels/weight_products.hpp.
struct Products {
  kernels::WeightShape shape;
  const Buffer* source;
  const Buffer* grad;
  Buffer* gradient;
  Buffer* scratch;

  void run() const {
    kernels::weight_products(shape, floats(source), floats(grad), floats(gradient), floats(scratch));
  }

 private:
  static float* floats(const Buffer* buffer) { return reinterpret_cast<float*>(buffer->data); }
};

class Convolution final : public Operator {
 public:
  Convolution(Plan& plan, const op::Convolution& spec) {
    Tensor& in = plan.input();
    Tensor& out = plan.output();
    set_activation_backward(out, spec.activation, spec.slope);
    const auto forward = fast_forward_desc(plan, spec);
    const std::int64_t channels = plan.input_shape().channels;
    source_ = plan.source(in.value, in.desc, *with_channels(forward.src_desc(), channels), Pass::forward);
    const auto weights = weights_desc(plan, spec, forward.src_desc(), out.gradient_desc(), forward);
    weights_ = plan.parameter(".weight", *own(plan, spec, weights.diff_weights_desc()));
    if (spec.bias == Bias::learned) bias_ = plan.parameter(".bias", vector_desc(spec.filters));
    make_forward(plan, spec, forward);
    if (plan.node().weights != Weights::frozen) make_backward_weights(plan, spec, weights);
    if (in.needs_gradient()) make_backward_data(plan, spec, forward);
    out.gradient_only_read = true;
    operations_ = plan.operations();
  }

  void forward(const Run& run) override {
    if (source_.convert) source_.convert.run(run.stream);
    if (read_.convert) read_.convert.run(run.stream);
    forward_.run(run.stream);
    if (written_.deliver) written_.deliver.run(run.stream);
  }
  void backward_weights(const Run& run) override {
    if (products_) products_->run();
    if (backward_weights_) backward_weights_.run(run.stream);
  }
  void backward_data(const Run& run) override {
    if (backward_data_) backward_data_.run(run.stream);
  }
  double operations() const override { return operations_; }
  std::string description() const override { return description_; }

 private:
  // The input as it lies, unless only another layout of it is fast.
  static Forward::primitive_desc fast_forward_desc(Plan& plan, const op::Convolution& spec) {
    const Desc& lies = plan.input().desc;
    const Desc& target = plan.output().desc;
    auto as_it_lies = forward_desc(plan, spec, lies, target);
    if (is_fast(plan, spec, as_it_lies)) return as_it_lies;
    auto free = forward_desc(plan, spec, any_layout(dims_of(lies), type_of(lies)), target);
    if (is_fast(plan, spec, free)) return free;
    if (spec.groups == 1) {
      auto whole =
          forward_desc(plan, spec, in_whole_blocks(dims_of(lies), type_of(lies), plan.layout()), target);
      if (is_fast(plan, spec, whole)) return whole;
    }
    return is_slow(as_it_lies) && !is_slow(free) ? free : as_it_lies;
  }

  // In forward and, where there is one, in backward_weights; and the parameter must be able to lie so.
  static bool is_fast(Plan& plan, const op::Convolution& spec, const Forward::primitive_desc& forward) {
    if (is_slow(forward) || !own(plan, spec, forward.weights_desc())) return false;
    const auto weights = weights_desc(plan, spec, forward.src_desc(), plan.output().gradient_desc(), forward);
    if (!own(plan, spec, weights.diff_weights_desc())) return false;
    return plan.node().weights == Weights::frozen || !is_slow(weights);
  }

  // Of weights that may be counted over whole blocks of channels, the parameter's part.
  static std::optional<Desc> own(Plan& plan, const op::Convolution& spec, const Desc& weights) {
    if (spec.groups != 1) return weights;  // never counted so
    return with_channels(weights, plan.input_shape().channels);
  }

  // In plain copies where only they are fast.
  static Forward::primitive_desc detour(Plan& plan, const op::Convolution& spec,
                                        const Forward::primitive_desc& direct) {
    if (!is_slow(direct)) return direct;
    auto plain = forward_desc(plan, spec, side_by_side(direct.src_desc()), side_by_side(plan.output().desc));
    return is_slow(plain) ? direct : plain;
  }

  void make_forward(Plan& plan, const op::Convolution& spec, const Forward::primitive_desc& direct) {
    const auto desc = detour(plan, spec, direct);
    read_ = plan.source(source_.buffer, direct.src_desc(), desc.src_desc(), Pass::forward);
    written_ = target(plan, plan.output().value, plan.output().desc, desc.dst_desc(), Pass::forward);
    Buffer* weights = plan.parameters().as(weights_, *own(plan, spec, desc.weights_desc()));
    std::vector<Call::Argument> arguments = {{DNNL_ARG_SRC, {desc.src_desc(), read_.buffer}},
                                             {DNNL_ARG_WEIGHTS, {desc.weights_desc(), weights}},
                                             {DNNL_ARG_DST, {desc.dst_desc(), written_.buffer}},
                                             plan.scratchpad(desc.scratchpad_desc(), Pass::forward)};
    if (bias_) arguments.push_back({DNNL_ARG_BIAS, {bias_->layout, &bias_->value}});
    forward_ = Call(Forward(desc), std::move(arguments));
    description_ = desc.impl_info_str();
  }

  void make_backward_weights(Plan& plan, const op::Convolution& spec,
                             const BackwardWeights::primitive_desc& desc) {
    plan.use(source_.buffer, Pass::backward);
    Buffer* gradient = plan.gradient_of(weights_, *own(plan, spec, desc.diff_weights_desc()));
    products_ = products(plan, spec, desc.diff_weights_desc(), gradient);
    if (products_) {
      description_ += ", products";
      return;
    }
    std::vector<Call::Argument> arguments = {
        {DNNL_ARG_SRC, {desc.src_desc(), source_.buffer}},
        {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
        {DNNL_ARG_DIFF_WEIGHTS, {desc.diff_weights_desc(), gradient}},
        plan.scratchpad(desc.scratchpad_desc(), Pass::backward)};
    if (bias_)
      arguments.push_back({DNNL_ARG_DIFF_BIAS, {bias_->layout, plan.gradient_of(bias_, bias_->layout)}});
    backward_weights_ = Call(BackwardWeights(desc), std::move(arguments));
    description_ += std::string(", ") + desc.impl_info_str();
  }

  // Where they are the faster way, and everything lies as they read and write it.
  std::optional<Products> products(Plan& plan, const op::Convolution& spec, const Desc& lies,
                                   Buffer* gradient) const {
    const Tensor& in = plan.input();
    const Tensor& out = plan.output();
    if (plan.input_shape().axes == Axes::volume) return std::nullopt;
    if (bias_ || spec.groups != 1 || plan.options().precision != Precision::f32 || source_.convert)
      return std::nullopt;
    const kernels::WeightShape shape{in.extents,  out.extents,  spec.kernel,       spec.kernel_width,
                                     spec.stride, spec.padding, spec.padding_width};
    if (!kernels::prefers_weight_products(shape)) return std::nullopt;
    if (blocks_of_products(weight_dims(spec, plan.input_shape().channels, 4), shape) != lies)
      return std::nullopt;
    const std::size_t bytes = kernels::weight_products_scratch(shape) * sizeof(float);
    return Products{shape, source_.buffer, out.gradients[0], gradient, plan.scratch(bytes, Pass::backward)};
  }

  void make_backward_data(Plan& plan, const op::Convolution& spec, const Forward::primitive_desc& hint) {
    Tensor& in = plan.input();
    const std::size_t dims = dims_of(in.desc).size();
    const Geometry geometry(spec, dims);
    const Desc weights =
        any_layout(weight_dims(spec, plan.input_shape().channels, dims), data_type(plan.options().precision));
    const auto desc = describe_backward<BackwardData>(
        plan.engine(), hint, algorithm::convolution_direct, in.gradient_desc(), weights,
        plan.output().gradient_desc(), geometry.strides, geometry.padding, geometry.padding);
    backward_data_ =
        Call(BackwardData(desc),
             {{DNNL_ARG_DIFF_SRC, {desc.diff_src_desc(), in.gradients[plan.claim_gradient()]}},
              {DNNL_ARG_WEIGHTS, {desc.weights_desc(), plan.parameters().as(weights_, desc.weights_desc())}},
              {DNNL_ARG_DIFF_DST, {desc.diff_dst_desc(), plan.output().gradients[0]}},
              plan.scratchpad(desc.scratchpad_desc(), Pass::backward)});
    description_ += std::string(", ") + desc.impl_info_str();
  }

  Source source_;   // the input, as forward and backward_weights read it ...
  Source read_;     // ... but that forward may take a detour
  Target written_;  // by forward
  Parameter* weights_ = nullptr;
  Parameter* bias_ = nullptr;
  Call forward_, backward_weights_, backward_data_;
  std::optional<Products> products_;  // in place of backward_weights_
  double operations_ = 0;
  std::string description_;
};

}  // namespace

std::optional<Desc> preferred_source(Plan& plan, const Node& node, const op::Convolution& spec) {
  const DataType type = data_type(plan.options().precision);
  const Shape& from = plan.node().shape;
  const Desc source = any_layout(dims_of(activation_desc(plan.batch(), from, type, {})), type);
  return forward_desc(plan, spec, source, activation_desc(plan.batch(), node.shape, type, plan.layout()))
      .src_desc();
}

OperatorPtr make_operator(Plan& plan, const op::Convolution& spec) {
  return std::make_unique<Convolution>(plan, spec);
}

}  // namespace dlrun::runtime
