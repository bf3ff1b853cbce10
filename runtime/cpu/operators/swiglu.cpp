// SwiGLU by an own kernel. Backward reads both inputs, so their values stay.
#include "runtime/cpu/kernels/gate.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class SwiGlu final : public Operator {
 public:
  explicit SwiGlu(Plan& plan) : gate_(plan.input(0)), up_(plan.input(1)), out_(plan.output()) {
    plan.set_layout(out_, gate_.desc, gate_.precision, gate_.extents);
    out_.gradient_only_read = out_.value_not_read = true;
    for (Tensor* in : {&gate_, &up_}) plan.use(in->value, Pass::backward);
    if (gate_.needs_gradient()) gate_gradient_ = gate_.gradients[plan.claim_gradient(0)];
    if (up_.needs_gradient()) up_gradient_ = up_.gradients[plan.claim_gradient(1)];
  }

  void forward(const Run&) override {
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      kernels::swiglu(out_.view().from(begin), gate_.const_view().from(begin), up_.const_view().from(begin),
                      end - begin);
    });
  }

  void backward_data(const Run&) override {
    if (gate_gradient_ == nullptr && up_gradient_ == nullptr) return;
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      kernels::swiglu_backward({at(gate_gradient_, begin), at(up_gradient_, begin)},
                               out_.const_gradient().from(begin), gate_.const_view().from(begin),
                               up_.const_view().from(begin), end - begin);
    });
  }

 private:
  kernels::View at(const Buffer* gradient, std::size_t begin) const {
    if (gradient == nullptr) return {nullptr, gate_.gradient_precision};
    return kernels::View{gradient->data, gate_.gradient_precision}.from(begin);
  }

  Tensor& gate_;
  Tensor& up_;
  Tensor& out_;
  Buffer* gate_gradient_ = nullptr;
  Buffer* up_gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::SwiGlu&) {
  return std::make_unique<SwiGlu>(plan);
}

}  // namespace dlrun::runtime
