// Embedding: a row of the weights for each token, plus a row for each position where those are learned.
// Backward adds to the rows of the tokens that were there; threads share the features, so that the order of
// the sums does not depend on them. Where a loss shares the weights, it has written its part of the gradient
// before. Of a divided table a rank has the features of its own tokens, and zeros for the others.
#include "runtime/cpu/kernels/rows.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

namespace {

Desc matrix_desc(std::int64_t rows, std::int64_t columns) {
  return {{rows, columns}, DataType::f32, Tag::ab};
}

class Embedding final : public Operator {
 public:
  Embedding(Plan& plan, const op::Embedding& spec)
      : tokens_(plan.input()),
        out_(plan.output()),
        shape_{.rows = plan.batch() * plan.node().shape.positions(),
               .positions = plan.node().shape.positions(),
               .features = spec.features,
               .vocabulary = spec.vocabulary} {
    const Desc table = matrix_desc(spec.vocabulary, spec.features);
    weights_ = plan.parameter(".weight", table);
    weight_gradient_ = plan.gradient_of(weights_, table);
    if (plan.node().weights == Weights::own) weights_->gradient_start = GradientStart::awaited;
    out_.gradient_only_read = out_.value_not_read = true;
    plan.use(tokens_.value, Pass::backward);
    if (plan.part()) take_part(plan);
    if (spec.positions == 0) return;
    const Desc all = matrix_desc(spec.positions, spec.features);
    positions_ = plan.parameter(".positions", all);
    position_gradient_ = plan.gradient_of(positions_, all);
    unused_positions_ = spec.positions - shape_.positions;
  }

  void forward(const Run&) override {
    find_own_tokens();
    const bool adds_positions = positions_ != nullptr && adds_positions_;
    const float* positions = adds_positions ? positions_->value.floats() : nullptr;
    parallel_for(static_cast<std::size_t>(shape_.rows), 16, [&](std::size_t begin, std::size_t end) {
      kernels::embed(out_.view(), {tokens(), weights_->value.floats(), positions}, shape_,
                     {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
    });
  }

  void backward_weights(const Run&) override {
    const bool adds =
        weight_gradient_ == &weights_->gradient && weights_->gradient_start == GradientStart::written;
    if (!adds) clear(weight_gradient_->floats(), shape_.vocabulary * shape_.features);
    if (positions_ != nullptr)
      clear(position_gradient_->floats() + shape_.positions * shape_.features,
            unused_positions_ * shape_.features);
    float* positions = positions_ == nullptr ? nullptr : position_gradient_->floats();
    parallel_for(static_cast<std::size_t>(shape_.features), 64, [&](std::size_t begin, std::size_t end) {
      kernels::embed_backward({weight_gradient_->floats(), positions}, out_.const_gradient(), tokens(),
                              shape_, {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
    });
  }

 private:
  void take_part(Plan& plan) {
    first_token_ = weights_->of->ranges[0].first;
    adds_positions_ = plan.adds_whole_terms();
    own_tokens_ = plan.scratch(static_cast<std::size_t>(shape_.rows) * sizeof(std::int32_t), Pass::forward);
    plan.use(own_tokens_, Pass::backward);
  }
  // As the rows of this part count them; those of others are outside, where features are 0.
  void find_own_tokens() {
    if (own_tokens_ == nullptr) return;
    const auto* all = reinterpret_cast<const std::int32_t*>(tokens_.value->data);
    auto* own = reinterpret_cast<std::int32_t*>(own_tokens_->data);
    const std::int64_t end = first_token_ + shape_.vocabulary;
    for (std::int64_t row = 0; row < shape_.rows; ++row)
      own[row] = all[row] >= first_token_ && all[row] < end
                     ? static_cast<std::int32_t>(all[row] - first_token_)
                     : -1;
  }
  const std::int32_t* tokens() const {
    const Buffer* from = own_tokens_ == nullptr ? tokens_.value : own_tokens_;
    return reinterpret_cast<const std::int32_t*>(from->data);
  }
  static void clear(float* from, std::int64_t count) {
    parallel_for(static_cast<std::size_t>(count), kernels::kGrain,
                 [&](std::size_t begin, std::size_t end) { std::fill(from + begin, from + end, 0.0F); });
  }

  Tensor& tokens_;
  Tensor& out_;
  kernels::EmbeddingShape shape_;
  Parameter* weights_ = nullptr;
  Parameter* positions_ = nullptr;
  Buffer* weight_gradient_ = nullptr;
  Buffer* position_gradient_ = nullptr;
  std::int64_t unused_positions_ = 0;
  // Where the ranks of a tensor group have a part of the rows each.
  std::int64_t first_token_ = 0;
  bool adds_positions_ = true;
  Buffer* own_tokens_ = nullptr;
};

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::Embedding& spec) {
  return std::make_unique<Embedding>(plan, spec);
}

}  // namespace dlrun::runtime
