// Dropout. Which elements survive is a function of seed, step, layer, shard and element alone: no state is
// kept, backward draws the same numbers again, and a resumed run repeats the same bits.
#include <cstring>

#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

namespace {

class Dropout final : public Operator {
 public:
  Dropout(Plan& plan, const op::Dropout& spec)
      : in_(plan.input()),
        out_(plan.output()),
        probability_(spec.probability),
        options_(plan.options()),
        layer_(dropouts_before(plan)) {
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
  static std::size_t dropouts_before(Plan& plan) {
    std::size_t count = 0;
    for (std::size_t node = 0; node < plan.index(); ++node)
      if (traits_of(plan.graph().nodes[node].operation).random == Randomness::mask) ++count;
    return count;
  }
  DropoutRule rule(const Run& run) {
    options_.rank = run.shard;
    return dropout_rule(options_, layer_, run.step, probability_);
  }

  Tensor& in_;
  Tensor& out_;
  float probability_;
  EngineOptions options_;
  std::size_t layer_;
  Buffer* gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Dropout& spec) {
  return std::make_unique<Dropout>(plan, spec);
}

}  // namespace dlrun::runtime
