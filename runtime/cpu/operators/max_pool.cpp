// Max pooling, with the ReLU of the convolution before it. One byte an output remembers which element won, so
// the convolution's output is not needed in backward.
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

kernels::PoolShape shape_of(Plan& plan, const op::MaxPool& spec, kernels::PoolShape) {
  const Extents &in = plan.input().extents, &out = plan.output().extents;
  return {in.batch * in.outer, in.height,   in.width,    out.height, out.width, in.inner,
          spec.window,         spec.stride, spec.padding};
}

kernels::VolumePoolShape shape_of(Plan& plan, const op::MaxPool& spec, kernels::VolumePoolShape) {
  const Extents& extents = plan.input().extents;
  const Shape &in = plan.input_shape(), &out = plan.node().shape;
  return {extents.batch * extents.outer,
          in.depth,
          in.height,
          in.width,
          out.depth,
          out.height,
          out.width,
          extents.inner,
          spec.window,
          spec.stride,
          spec.padding};
}

std::int64_t in_plane(const kernels::PoolShape& of) {
  return of.in_height * of.in_width * of.inner;
}
std::int64_t out_plane(const kernels::PoolShape& of) {
  return of.out_height * of.out_width * of.inner;
}
std::int64_t in_plane(const kernels::VolumePoolShape& of) {
  return of.in_depth * of.in_height * of.in_width * of.inner;
}
std::int64_t out_plane(const kernels::VolumePoolShape& of) {
  return of.out_depth * of.out_height * of.out_width * of.inner;
}

void pool_part(kernels::View out, std::uint8_t* argmax, kernels::ConstView in,
               const kernels::PoolShape& shape, Activation activation) {
  if (activation == Activation::relu)
    kernels::max_pool_relu(out, argmax, in, shape);
  else
    kernels::max_pool(out, argmax, in, shape);
}
void pool_part(kernels::View out, std::uint8_t* argmax, kernels::ConstView in,
               const kernels::VolumePoolShape& shape, Activation activation) {
  kernels::max_pool(out, argmax, in, shape, activation);
}

// Of images or of volumes.
template <class PoolShape>
class MaxPool final : public Operator {
 public:
  MaxPool(Plan& plan, const op::MaxPool& spec)
      : in_(plan.input()),
        out_(plan.output()),
        activation_(spec.activation),
        shape_(shape_of(plan, spec, PoolShape{})) {
    out_.gradient_only_read = true;
    argmax_ = plan.buffer(out_.elements);
    plan.use(argmax_, Pass::forward);
    if (!in_.needs_gradient()) return;
    plan.use(argmax_, Pass::backward);
    reader_ = plan.claim_gradient();
  }

  void forward(const Run&) override {
    each_part([&](const PoolShape& shape, std::size_t in, std::size_t out) {
      pool_part(out_.view().from(out), argmax(out), in_.const_view().from(in), shape, activation_);
    });
  }

  void backward_data(const Run&) override {
    if (!in_.needs_gradient()) return;
    each_part([&](const PoolShape& shape, std::size_t in, std::size_t out) {
      kernels::max_pool_backward(in_.gradient(reader_).from(in), out_.const_gradient().from(out), argmax(out),
                                 shape);
    });
  }

 private:
  // body(shape of some planes, their first element in the input and in the output), over the threads.
  template <class Body>
  void each_part(const Body& body) const {
    const auto in_size = static_cast<std::size_t>(in_plane(shape_));
    const auto out_size = static_cast<std::size_t>(out_plane(shape_));
    parallel_for(static_cast<std::size_t>(shape_.planes), 1, [&](std::size_t begin, std::size_t end) {
      PoolShape part = shape_;
      part.planes = static_cast<std::int64_t>(end - begin);
      body(part, begin * in_size, begin * out_size);
    });
  }

  std::uint8_t* argmax(std::size_t element) const {
    return reinterpret_cast<std::uint8_t*>(argmax_->data) + element;
  }

  Tensor& in_;
  Tensor& out_;
  Activation activation_;
  PoolShape shape_;
  Buffer* argmax_ = nullptr;
  std::size_t reader_ = 0;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::MaxPool& spec) {
  if (plan.input_shape().axes == Axes::volume)
    return std::make_unique<MaxPool<kernels::VolumePoolShape>>(plan, spec);
  return std::make_unique<MaxPool<kernels::PoolShape>>(plan, spec);
}

}  // namespace dlrun::runtime
