// Stage input: received from the stage before, to which backward sends the gradient. The place of the
// gradient is not the value's: the next value may come before the gradient has gone.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class StageInput final : public Operator {
 public:
  StageInput(Plan& plan, const op::StageInput& spec) : out_(plan.output()), calls_(plan.group_calls()) {
    plan.keep(out_.value);
    out_.gradient_only_read = true;
    const Desc rows = activation_desc(plan.batch(), spec.rows, DataType::f32, {Tag::nchw, 1});
    Buffer* const filled = plan.buffer(rows.get_size());
    plan.keep(filled);
    plan.set_rows(filled);
  }

  void forward(const Run&) override { calls_.receive_values({out_.value->data, out_.desc.get_size()}); }
  void backward_data(const Run&) override {
    calls_.send_gradients({out_.gradients[0]->data, out_.gradient_desc().get_size()});
  }

 private:
  Tensor& out_;
  GroupCalls& calls_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::StageInput& spec) {
  return std::make_unique<StageInput>(plan, spec);
}

}  // namespace dlrun::runtime
