// Max pooling, with the ReLU of the convolution before it. One byte an output remembers which element won, so
// the convolution's output is not needed in backward.
#include "runtime/graph/plan.hpp"

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
    winners_ = plan.buffer(out_.elements);
    plan.use(winners_, Pass::forward);
    if (!in_.needs_gradient()) return;
    plan.use(winners_, Pass::backward);
    reader_ = plan.claim_gradient();
  }

  void forward(const Run&) override {
    auto* winners = reinterpret_cast<std::uint8_t*>(winners_->data);
    if (activation_ == Activation::relu)
      kernels::max_pool_relu(out_.view(), winners, in_.const_view(), shape_);
    else
      kernels::max_pool(out_.view(), winners, in_.const_view(), shape_);
  }

  void backward_data(const Run&) override {
    if (!in_.needs_gradient()) return;
    kernels::max_pool_backward(in_.gradient(reader_), out_.const_gradient(),
                               reinterpret_cast<const std::uint8_t*>(winners_->data), shape_);
  }

 private:
  Tensor& in_;
  Tensor& out_;
  Activation activation_;
  kernels::PoolShape shape_{};
  Buffer* winners_ = nullptr;
  std::size_t reader_ = 0;
};

}  // namespace

Made make_operator(Plan& plan, const op::MaxPool& spec) {
  return std::make_unique<MaxPool>(plan, spec);
}

}  // namespace dlrun::runtime
