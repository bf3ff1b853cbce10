// Dropout. Which elements survive is a function of seed, step, layer, rank and element alone: no state is
// kept, backward draws the same numbers again, and a resumed run repeats the same bits.
#include <cstring>

#include "runtime/graph/plan.hpp"
#include "runtime/graph/random.hpp"

namespace dlrun::runtime {

namespace {

class Dropout final : public Operator {
 public:
  Dropout(Plan& plan, const op::Dropout& spec)
      : in_(plan.input()),
        out_(plan.output()),
        probability_(spec.probability),
        key_(random_key({plan.options().seed, hash_text("dropout"),
                         static_cast<std::uint64_t>(plan.options().rank), plan.index()})) {
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    if (!in_.needs_gradient()) return;
    gradient_ = in_.gradients[plan.claim_gradient()];
    Plan::share(gradient_, out_.gradients[0]);
  }

  void forward(const Run& run) override {
    if (run.mode == Mode::train)
      kernels::dropout(out_.view(), in_.const_view(), 0, out_.elements, rule(run));
    else
      std::memcpy(out_.value->data, in_.value->data, out_.desc.get_size());
  }

  void backward_data(const Run& run) override {
    if (!in_.needs_gradient()) return;
    kernels::dropout(out_.gradient(), out_.const_gradient(), 0, out_.elements, rule(run));
  }

 private:
  kernels::DropoutRule rule(const Run& run) const { return {random_key({key_, run.step}), probability_}; }

  Tensor& in_;
  Tensor& out_;
  float probability_;
  std::uint64_t key_;
  Buffer* gradient_ = nullptr;
};

}  // namespace

Made make_operator(Plan& plan, const op::Dropout& spec) {
  return std::make_unique<Dropout>(plan, spec);
}

}  // namespace dlrun::runtime
