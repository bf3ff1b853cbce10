// Global average pooling: one number per channel.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class GlobalAveragePool final : public Operator {
 public:
  explicit GlobalAveragePool(Plan& plan) : in_(plan.input()), out_(plan.output()) {
    if (in_.needs_gradient()) reader_ = plan.claim_gradient();
  }

  void forward(const Run&) override {
    kernels::average_pool(out_.view(), in_.const_view(), planes(), area(), in_.extents.inner);
  }

  void backward_data(const Run&) override {
    if (!in_.needs_gradient()) return;
    kernels::average_pool_backward(in_.gradient(reader_), out_.const_gradient(), planes(), area(),
                                   in_.extents.inner);
  }

 private:
  std::int64_t planes() const { return in_.extents.batch * in_.extents.outer; }
  std::int64_t area() const { return in_.extents.height * in_.extents.width; }

  Tensor& in_;
  Tensor& out_;
  std::size_t reader_ = 0;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::GlobalAveragePool&) {
  return std::make_unique<GlobalAveragePool>(plan);
}

}  // namespace dlrun::runtime
