// Sum of two values, with a ReLU after it. Its gradient is both inputs' gradient, so where that is safe both
// just lie in its place.
#include <cstring>

#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Add final : public Operator {
 public:
  Add(Plan& plan, const op::Add& spec)
      : left_(plan.input(0)), right_(plan.input(1)), out_(plan.output()), activation_(spec.activation) {
    out_.masked_by_producer = activation_ == Activation::none || !out_.needs_gradient();
    // Backward runs from the last node to the first. The input that was made first is dealt with last and may
    // do what it likes with the gradient; the other one must only read it.
    const std::size_t first = plan.node().inputs[0] < plan.node().inputs[1] ? 0 : 1;
    for (const std::size_t which : {first, 1 - first}) {
      Tensor& in = plan.input(which);
      if (!in.needs_gradient()) continue;
      Buffer* gradient = in.gradients[plan.claim_gradient(which)];
      if (which == first || only_reads_its_gradient(plan, which))
        Plan::share(gradient, out_.gradients[0]);
      else
        copies_to_ = gradient;
    }
  }

  void forward(const Run&) override {
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      const auto out = out_.view().from(begin);
      const auto left = left_.const_view().from(begin), right = right_.const_view().from(begin);
      if (activation_ == Activation::relu)
        kernels::add_relu(out, left, right, end - begin);
      else
        kernels::add(out, left, right, end - begin);
    });
  }

  void backward_data(const Run&) override {
    if (copies_to_ != nullptr)
      std::memcpy(copies_to_->data, out_.gradients[0]->data, out_.gradient_desc().get_size());
  }

 private:
  static bool only_reads_its_gradient(Plan& plan, std::size_t which) {
    const Tensor& in = plan.input(which);
    return in.gradient_only_read && in.masked_by_producer && plan.is_only_reader(which);
  }

  Tensor& left_;
  Tensor& right_;
  Tensor& out_;
  Activation activation_;
  Buffer* copies_to_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Add& spec) {
  return std::make_unique<Add>(plan, spec);
}

}  // namespace dlrun::runtime
