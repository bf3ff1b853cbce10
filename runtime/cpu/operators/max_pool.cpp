// Max pooling, with the ReLU of the convolution before it. One byte an output remembers which element won, so
// the convolution's output is not needed in backward.
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class MaxPool final : public Operator {
 public:
  MaxPool(Plan& plan, const op::MaxPool& spec)
      : in_(plan.input()), out_(plan.output()), activation_(spec.activation) {
    shape_ = {in_.extents.batch * in_.extents.outer,
              in_.extents.height,
              in_.extents.width,
              out_.extents.height,
              out_.extents.width,
              in_.extents.inner,
              spec.window,
              spec.stride,
              spec.padding};
    out_.gradient_only_read = true;
    argmax_ = plan.buffer(out_.elements);
    plan.use(argmax_, Pass::forward);
    if (!in_.needs_gradient()) return;
    plan.use(argmax_, Pass::backward);
    reader_ = plan.claim_gradient();
  }

  void forward(const Run&) override {
    each_part([&](const kernels::PoolShape& shape, std::size_t in, std::size_t out) {
      if (activation_ == Activation::relu)
        kernels::max_pool_relu(out_.view().from(out), argmax(out), in_.const_view().from(in), shape);
      else
        kernels::max_pool(out_.view().from(out), argmax(out), in_.const_view().from(in), shape);
    });
  }

  void backward_data(const Run&) override {
    if (!in_.needs_gradient()) return;
    each_part([&](const kernels::PoolShape& shape, std::size_t in, std::size_t out) {
      kernels::max_pool_backward(in_.gradient(reader_).from(in), out_.const_gradient().from(out), argmax(out),
                                 shape);
    });
  }

 private:
  // body(shape of some planes, their first element in the input and in the output), over the threads.
  template <class Body>
  void each_part(const Body& body) const {
    const auto in_plane = static_cast<std::size_t>(shape_.in_height * shape_.in_width * shape_.inner);
    const auto out_plane = static_cast<std::size_t>(shape_.out_height * shape_.out_width * shape_.inner);
    parallel_for(static_cast<std::size_t>(shape_.planes), 1, [&](std::size_t begin, std::size_t end) {
      kernels::PoolShape part = shape_;
      part.planes = static_cast<std::int64_t>(end - begin);
      body(part, begin * in_plane, begin * out_plane);
    });
  }

  std::uint8_t* argmax(std::size_t element) const {
    return reinterpret_cast<std::uint8_t*>(argmax_->data) + element;
  }

  Tensor& in_;
  Tensor& out_;
  Activation activation_;
  kernels::PoolShape shape_{};
  Buffer* argmax_ = nullptr;
  std::size_t reader_ = 0;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::MaxPool& spec) {
  return std::make_unique<MaxPool>(plan, spec);
}

}  // namespace dlrun::runtime
