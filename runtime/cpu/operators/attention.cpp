// Causal attention by own kernels, which see one head of keys with its queries in one sample: those are what
// threads share. Forward keeps a number for each query and no scores.
#include "runtime/cpu/kernels/attention.hpp"

#include <cmath>
#include <vector>

#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"
#include "runtime/engine/random_keys.hpp"
#include "runtime/graph/roles.hpp"

namespace dlrun::runtime {

namespace {

// [positions][width / 2] cosines, then the sines.
std::vector<float> rotary_table(const kernels::AttentionShape& shape, double base) {
  const std::int64_t half = shape.width / 2, count = shape.positions * half;
  std::vector<float> out(static_cast<std::size_t>(2 * count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double pair = 2.0 * static_cast<double>(i % half) / static_cast<double>(shape.width);
    const std::int64_t position = i / half;
    const double angle = static_cast<double>(position) * std::pow(base, -pair);
    out[static_cast<std::size_t>(i)] = static_cast<float>(std::cos(angle));
    out[static_cast<std::size_t>(count + i)] = static_cast<float>(std::sin(angle));
  }
  return out;
}

class Attention final : public Operator {
 public:
  Attention(Plan& plan, const op::Attention& spec)
      : in_(plan.input()),
        out_(plan.output()),
        batch_(plan.batch()),
        shape_{.positions = plan.node().shape.positions(),
               .heads = spec.heads,
               .key_heads = spec.keys(),
               .width = spec.width(plan.input_shape().features())},
        items_(batch_ * shape_.key_heads),
        parts_(std::min(items_, static_cast<std::int64_t>(detail::thread_count()))),
        spec_(spec),
        options_(plan.options()),
        layer_(masks_before(plan.graph(), plan.index())) {
    if (spec.rotary_base > 0) angles_ = rotary_table(shape_, spec.rotary_base);
    out_.gradient_only_read = true;
    log_sums_ = plan.scratch(
        static_cast<std::size_t>(batch_ * shape_.heads * shape_.positions) * sizeof(float), Pass::forward);
    plan.use(log_sums_, Pass::backward);
    const std::size_t bytes =
        static_cast<std::size_t>(parts_) * kernels::attention_scratch(shape_) * sizeof(float);
    scratch_ = plan.scratch(bytes, Pass::forward);
    if (!in_.needs_gradient()) return;
    backward_scratch_ = plan.scratch(bytes, Pass::backward);
    for (Tensor* of : {&in_, &out_}) plan.use(of->value, Pass::backward);
    gradient_ = in_.gradients[plan.claim_gradient()];
  }

  void forward(const Run& run) override {
    const DropoutRule rule = rule_of(run);
    each(*scratch_, [&](std::int64_t sample, std::int64_t head, float* scratch) {
      kernels::attention({out_.view().from(out_row(sample)), in_.const_view().from(in_row(sample)),
                          log_sums(sample), scratch, rotary(), dropout_of(rule, sample)},
                         shape_, head);
    });
  }

  void backward_data(const Run& run) override {
    if (gradient_ == nullptr) return;
    const DropoutRule rule = rule_of(run);
    const kernels::View to{gradient_->data, in_.gradient_precision};
    each(*backward_scratch_, [&](std::int64_t sample, std::int64_t head, float* scratch) {
      kernels::attention_backward(
          {to.from(in_row(sample)), out_.const_gradient().from(out_row(sample)),
           out_.const_view().from(out_row(sample)), in_.const_view().from(in_row(sample)), log_sums(sample),
           scratch, rotary(), dropout_of(rule, sample)},
          shape_, head);
    });
  }

  // Half of the products of scores and of values: a position reads those before it.
  double operations() const override {
    return 2.0 * static_cast<double>(batch_ * shape_.heads * shape_.width) *
           static_cast<double>(shape_.positions * (shape_.positions + 1));
  }
  std::string description() const override { return "blocks"; }

 private:
  template <class Body>
  void each(const Buffer& memory, const Body& body) const {
    parallel_for(static_cast<std::size_t>(parts_), 1, [&](std::size_t begin, std::size_t end) {
      for (auto part = static_cast<std::int64_t>(begin); part < static_cast<std::int64_t>(end); ++part) {
        float* const scratch =
            memory.floats() + static_cast<std::size_t>(part) * kernels::attention_scratch(shape_);
        for (std::int64_t item = part * items_ / parts_; item < (part + 1) * items_ / parts_; ++item)
          body(item / shape_.key_heads, item % shape_.key_heads, scratch);
      }
    });
  }
  std::size_t in_row(std::int64_t sample) const {
    return static_cast<std::size_t>(sample * shape_.positions * shape_.in_features());
  }
  std::size_t out_row(std::int64_t sample) const {
    return static_cast<std::size_t>(sample * shape_.positions * shape_.out_features());
  }
  float* log_sums(std::int64_t sample) const {
    return log_sums_->floats() + sample * shape_.heads * shape_.positions;
  }
  kernels::Rotary rotary() const {
    if (angles_.empty()) return {};
    return {angles_.data(), angles_.data() + angles_.size() / 2};
  }

  DropoutRule rule_of(const Run& run) {
    if (run.mode != Mode::train || spec_.dropout == 0) return {0, 0};
    options_.rank = run.shard;
    return dropout_rule(options_, layer_, run.step, spec_.dropout);
  }
  // A part of a model's heads draws what these draw in the whole.
  kernels::ShareDropout dropout_of(const DropoutRule& rule, std::int64_t sample) const {
    return {rule, (sample * spec_.total_heads() + spec_.first_head) * shape_.positions};
  }

  Tensor& in_;
  Tensor& out_;
  std::int64_t batch_;
  kernels::AttentionShape shape_;
  std::int64_t items_, parts_;
  op::Attention spec_;
  EngineOptions options_;
  std::size_t layer_;
  std::vector<float> angles_;
  Buffer* log_sums_ = nullptr;
  Buffer* scratch_ = nullptr;
  Buffer* backward_scratch_ = nullptr;
  Buffer* gradient_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Attention& spec) {
  return std::make_unique<Attention>(plan, spec);
}

}  // namespace dlrun::runtime
