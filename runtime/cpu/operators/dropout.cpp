// Dropout. Which elements survive is a function of seed, step, layer, shard and element alone: no state is
// kept, backward draws the same numbers again, and a resumed run repeats the same bits.
#include <cstring>
#include <vector>

#include "runtime/base/keyed_random.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

namespace {

class Dropout final : public Operator {
 public:
  Dropout(Plan& plan, const op::Dropout& spec)
      : in_(plan.input()),
        out_(plan.output()),
        probability_(spec.probability),
        options_(plan.options()),
        layer_(masks_before(plan.graph(), plan.index())) {
    if (plan.has_slice())
      first_ = static_cast<std::size_t>(plan.part()->part) * out_.elements;
    else if (plan.part())
      part_ = {plan.node().shape.features(), plan.part()->part, plan.part()->parts};
    plan.set_layout(out_, in_.desc, in_.precision, in_.extents);
    if (!in_.needs_gradient()) return;
    gradient_ = in_.gradients[plan.claim_gradient()];
    Plan::share(gradient_, out_.gradients[0]);
  }

  void forward(const Run& run) override {
    if (run.mode == Mode::train)
      drop(out_.view(), in_.const_view(), run);
    else
      std::memcpy(out_.value->data, in_.value->data, out_.desc.get_size());
  }

  void backward_data(const Run& run) override {
    if (!in_.needs_gradient()) return;
    drop(out_.gradient(), out_.const_gradient(), run);
  }

 private:
  void drop(kernels::View to, kernels::ConstView from, const Run& run) {
    const DropoutRule drawn = rule(run);
    if (part_.parts > 1) return drop_part(to, from, drawn);
    parallel_for(out_.elements, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      kernels::dropout(to.from(begin), from.from(begin), first_ + begin, end - begin, drawn);
    });
  }
  // Row by row, with the numbers that these features have in the whole value. The kernel works on whole
  // lanes: a row goes through memory of its own.
  void drop_part(kernels::View to, kernels::ConstView from, const DropoutRule& drawn) const {
    const auto row = static_cast<std::size_t>(part_.features);
    const std::size_t bytes = row * (to.precision == Precision::bf16 ? 2 : 4);
    parallel_for(out_.elements / row, 1 + kernels::kGrain / row, [&](std::size_t begin, std::size_t end) {
      std::vector<std::byte> memory(aligned(bytes) + kAlignment);
      for (std::size_t at = begin; at < end; ++at) {
        const std::size_t whole =
            at * static_cast<std::size_t>(part_.parts) + static_cast<std::size_t>(part_.part);
        std::memcpy(memory.data(), from.from(at * row).data, bytes);
        kernels::dropout({memory.data(), to.precision}, {memory.data(), to.precision}, whole * row, row,
                         drawn);
        std::memcpy(to.from(at * row).data, memory.data(), bytes);
      }
    });
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
  std::size_t first_ = 0;  // of a slice, in the whole value
  struct Part {
    std::int64_t features = 0;
    int part = 0, parts = 1;
  } part_;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Dropout& spec) {
  return std::make_unique<Dropout>(plan, spec);
}

}  // namespace dlrun::runtime
