// Stage output: sent to the stage behind as that one has it, in the layout that a plan gives activations; the
// gradient comes back so. A value that lies otherwise goes through memory of its own.
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

class StageOutput final : public Operator {
 public:
  explicit StageOutput(Plan& plan)
      : in_(plan.input()), sent_(plan.output().desc), calls_(plan.group_calls()) {
    plan.labels(), plan.mixed_labels();  // whoever trains fills them on every stage
    gradient_ = in_.gradients[plan.claim_gradient()];
    if (in_.desc == sent_ && in_.gradient_desc() == sent_) {
      Plan::share(plan.output().value, in_.value);
      value_ = in_.value, received_ = gradient_;
      return;
    }
    value_ = plan.output().value;
    received_ = plan.scratch(sent_.get_size(), Pass::backward);
    convert_ = converted(plan, {in_.desc, in_.value}, {sent_, value_});
    convert_back_ = converted(plan, {sent_, received_}, {in_.gradient_desc(), gradient_});
  }

  void forward(const Run& run) override {
    if (convert_) convert_.run(run.stream);
    calls_.send_values({value_->data, sent_.get_size()});
  }
  void backward_data(const Run& run) override {
    calls_.receive_gradients({received_->data, sent_.get_size()});
    if (convert_back_) convert_back_.run(run.stream);
  }

 private:
  using Place = std::pair<Desc, Buffer*>;
  static Call converted(Plan& plan, const Place& from, const Place& to) {
    const dnnl::reorder::primitive_desc desc(plan.engine(), from.first, plan.engine(), to.first,
                                             attributes());
    return {dnnl::reorder(desc),
            {{DNNL_ARG_FROM, {from.first, from.second}}, {DNNL_ARG_TO, {to.first, to.second}}}};
  }

  Tensor& in_;
  Desc sent_;
  GroupCalls& calls_;
  Buffer* gradient_;
  Buffer* value_;
  Buffer* received_;
  Call convert_, convert_back_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::StageOutput&) {
  return std::make_unique<StageOutput>(plan);
}

}  // namespace dlrun::runtime
