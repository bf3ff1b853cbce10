// Reshape: a vector from a fully connected layer becomes an image. The vector lies plain, the image in the
// plan's layout, so it is moved, and its gradient back.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class Reshape final : public Operator {
 public:
  explicit Reshape(Plan& plan) {
    Tensor &in = plan.input(), &out = plan.output();
    const auto vector = [&](DataType type) {
      return activation_desc(plan.batch(), plan.node().shape, type, {Tag::nchw, 1});
    };
    lay_ = move(plan, vector(data_type(in.precision)), in.value, out.desc, out.value);
    if (!in.needs_gradient()) return;
    lay_back_ = move(plan, out.gradient_desc(), out.gradients[0], vector(data_type(in.gradient_precision)),
                     in.gradients[plan.claim_gradient()]);
  }

  void forward(const Run& run) override { lay_.run(run.stream); }
  void backward_data(const Run& run) override {
    if (lay_back_) lay_back_.run(run.stream);
  }

 private:
  static Call move(Plan& plan, const Desc& from, Buffer* source, const Desc& to, Buffer* target) {
    const dnnl::reorder::primitive_desc desc(plan.engine(), from, plan.engine(), to, attributes());
    return {dnnl::reorder(desc), {{DNNL_ARG_FROM, {from, source}}, {DNNL_ARG_TO, {to, target}}}};
  }

  Call lay_, lay_back_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Reshape&) {
  return std::make_unique<Reshape>(plan);
}

}  // namespace dlrun::runtime
