// Vocabulary loss: rows of the batch in chunks, so that the scores of one chunk alone are in memory. A
// chunk's scores, its softmax, both gradients: all of them in backward's first call, since that has the
// scores. The loss of a row of the batch is the mean over its positions, also those that do not count (label
// -1). The ranks of a tensor group have the scores of a part of the vocabulary each: they exchange four
// numbers per row.
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels/elements.hpp"
#include "runtime/cpu/kernels/vocabulary.hpp"
#include "runtime/cpu/matrix_product.hpp"
#include "runtime/cpu/operators/loss.hpp"
#include "runtime/cpu/parallel.hpp"

namespace dlrun::runtime {

namespace {

// Scores of a chunk: 8 MB where rows are short, and enough rows for products of matrices to be fast.
constexpr std::int64_t kScores = std::int64_t{1} << 21, kFewRows = 256;

std::int64_t rows_of_chunk(std::int64_t rows, std::int64_t vocabulary) {
  return std::min(rows, std::max(kFewRows, kScores / vocabulary));
}

class VocabularyLoss final : public Loss, private LanguageEngine {
 public:
  VocabularyLoss(Plan& plan, const op::VocabularyLoss& spec)
      : Loss(plan),
        in_(plan.input()),
        samples_(plan.batch()),
        positions_(plan.input_shape().positions()),
        features_(plan.input_shape().features()),
        vocabulary_(spec.vocabulary),
        rows_(samples_ * positions_),
        chunk_(rows_of_chunk(rows_, tokens_of(plan, spec))),
        type_(data_type(in_.precision)),
        operations_(plan.operations()) {
    const Desc table({vocabulary_, features_}, DataType::f32, Tag::ab);
    Parameter* const weights = plan.parameter(".weight", table);
    plain_weights_ = plan.parameters().as(weights, table);
    read_weights_ = plan.parameters().as(weights, with_type(table, type_));
    if (plan.part()) take_part(plan, *weights);
    make_memory(plan);
    if (plan.node().weights != Weights::frozen) {
      weight_gradient_ = Plan::first_gradient_of(weights);
      if (weight_gradient_ == nullptr) weight_gradient_ = plan.gradient_of(weights, table);
    }
    if (in_.needs_gradient()) in_gradient_ = in_.gradients[plan.claim_gradient()];
    whole_ = make_products(plan, chunk_);
    if (rows_ % chunk_ != 0) last_ = make_products(plan, rows_ % chunk_);
  }

  void forward(const Run& run) override {
    if (run.mode == Mode::evaluate) run_chunks(run, Pass::forward);
  }
  void backward_weights(const Run& run) override { run_chunks(run, Pass::backward); }

  double operations() const override { return operations_; }
  std::string description() const override {
    return whole_.scores.description() + ", " + whole_.weights.description() + ", " +
           whole_.input.description();
  }
  LanguageEngine* language() override { return calls_ == nullptr ? this : nullptr; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  Result<void> next_scores(std::int64_t position, std::span<float> scores) override;

 private:
  // Chunks are the same on all ranks that divide a vocabulary.
  static std::int64_t tokens_of(Plan& plan, const op::VocabularyLoss& spec) {
    return plan.part() ? std::get<op::VocabularyLoss>(plan.part()->whole).vocabulary : spec.vocabulary;
  }

  void take_part(Plan& plan, const Parameter& weights) {
    by_ = {.first_token = weights.of->ranges[0].first,
           .tokens = weights.of->whole[0],
           .part = plan.part()->part,
           .parts = plan.part()->parts};
    calls_ = &plan.group_calls();
    const std::size_t bytes = static_cast<std::size_t>(chunk_) * sizeof(kernels::ScoreSums);
    own_sums_ = plan.scratch(bytes, Pass::forward);
    all_sums_ = plan.scratch(bytes * static_cast<std::size_t>(by_.parts), Pass::forward);
    for (Buffer* buffer : {own_sums_, all_sums_}) plan.use(buffer, Pass::backward);
  }

  // The three products of so many rows.
  struct Products {
    std::int64_t rows = 0;
    MatrixProduct scores, first_weights, weights, input;
  };

  void make_memory(Plan& plan) {
    plan.use(in_.value, Pass::backward);
    const auto scratch = [&plan](std::size_t bytes) {
      Buffer* buffer = plan.scratch(bytes, Pass::forward);
      plan.use(buffer, Pass::backward);
      return buffer;
    };
    const auto numbers = static_cast<std::size_t>(chunk_ * vocabulary_);
    scores_ = scratch(numbers * sizeof(float));
    score_gradients_ = type_ == DataType::f32 ? scores_ : scratch(numbers * size_of(type_));
    results_ = scratch(static_cast<std::size_t>(chunk_) * sizeof(kernels::ScoreRow));
  }

  Products make_products(Plan& plan, std::int64_t rows) const {
    const MatrixForm plain{type_}, turned{type_, MatrixOrder::columns};
    const MatrixProduct::Size weights{vocabulary_, rows, features_};
    return {.rows = rows,
            .scores = {plan, {rows, features_, vocabulary_}, plain, turned, DataType::f32, ProductSum::anew},
            .first_weights = {plan, weights, turned, plain, DataType::f32, ProductSum::anew},
            .weights = {plan, weights, turned, plain, DataType::f32, ProductSum::onto},
            .input = {plan, {rows, vocabulary_, features_}, plain, plain, type_, ProductSum::anew}};
  }

  void run_chunks(const Run& run, Pass pass) {
    result_ = {};
    for (std::int64_t first = 0; first < rows_; first += chunk_) {
      const Products& products = rows_ - first < chunk_ ? last_ : whole_;
      score(run, products, first, pass);
      if (pass == Pass::backward) gradients(run, products, first);
    }
    result_.loss_sum /= static_cast<double>(positions_);
  }

  const std::byte* input_at(std::int64_t row) const {
    return in_.value->data + static_cast<std::size_t>(row * features_) * size_of(type_);
  }
  kernels::ScoreRow* results() const { return reinterpret_cast<kernels::ScoreRow*>(results_->data); }

  // Scores, losses and, in backward, the gradients of the scores.
  void score(const Run& run, const Products& products, std::int64_t first, Pass pass) {
    products.scores.run(run.stream, input_at(first), read_weights_->data, scores_->data);
    const kernels::ScoreRows rows{
        .scores = scores_->floats(),
        .gradient = {pass == Pass::backward ? score_gradients_->data : nullptr, in_.precision},
        .labels = labels().data() + first,
        .results = results(),
        .vocabulary = vocabulary_,
        .weight = 1.0F / static_cast<float>(positions_ * samples_)};
    if (calls_ == nullptr)
      each_row(products.rows,
               [&](std::int64_t begin, std::int64_t end) { kernels::score_rows(rows, begin, end); });
    else
      score_together(rows, products.rows);
    for (std::int64_t row = 0; row < products.rows; ++row) {
      result_.loss_sum += results()[row].loss;
      result_.correct += results()[row].correct;
    }
  }

  template <class Body>
  static void each_row(std::int64_t rows, const Body& body) {
    parallel_for(static_cast<std::size_t>(rows), 8, [&](std::size_t begin, std::size_t end) {
      body(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    });
  }

  // With the other ranks of the tensor group.
  void score_together(const kernels::ScoreRows& rows, std::int64_t count) {
    auto* const own = reinterpret_cast<kernels::ScoreSums*>(own_sums_->data);
    auto* const all = reinterpret_cast<kernels::ScoreSums*>(all_sums_->data);
    const auto numbers = static_cast<std::size_t>(count);
    each_row(count, [&](std::int64_t begin, std::int64_t end) {
      kernels::sum_score_rows(rows, by_, own, begin, end);
    });
    calls_->gather(std::as_bytes(std::span(own, numbers)),
                   std::as_writable_bytes(std::span(all, numbers * static_cast<std::size_t>(by_.parts))));
    each_row(count, [&](std::int64_t begin, std::int64_t end) {
      kernels::join_score_rows(rows, by_, all, count, begin, end);
    });
  }

  void gradients(const Run& run, const Products& products, std::int64_t first) {
    if (weight_gradient_ != nullptr)
      (first == 0 ? products.first_weights : products.weights)
          .run(run.stream, score_gradients_->data, input_at(first), weight_gradient_->data);
    if (in_gradient_ == nullptr) return;
    std::byte* const to = in_gradient_->data + static_cast<std::size_t>(first * features_) * size_of(type_);
    products.input.run(run.stream, score_gradients_->data, read_weights_->data, to);
  }

  Tensor& in_;
  std::int64_t samples_, positions_, features_, vocabulary_, rows_, chunk_;
  DataType type_;
  double operations_;
  Buffer* plain_weights_ = nullptr;  // in f32
  Buffer* read_weights_ = nullptr;
  Buffer* weight_gradient_ = nullptr;
  Buffer* in_gradient_ = nullptr;
  Buffer *scores_ = nullptr, *score_gradients_ = nullptr, *results_ = nullptr;
  Products whole_, last_;
  // Where a tensor group divides the vocabulary.
  kernels::DividedVocabulary by_;
  GroupCalls* calls_ = nullptr;
  Buffer *own_sums_ = nullptr, *all_sums_ = nullptr;
};

// In f32, whatever the precision: a few rows.
Result<void> VocabularyLoss::next_scores(std::int64_t position, std::span<float> scores) {
  if (position < 0 || position >= positions_ ||
      scores.size() != static_cast<std::size_t>(samples_ * vocabulary_))
    return fail(ErrorKind::internal, "scores of position {} of {} into {} numbers", position, positions_,
                scores.size());
  std::vector<float> rows(static_cast<std::size_t>(samples_ * features_));
  for (std::int64_t sample = 0; sample < samples_; ++sample) {
    const kernels::ConstView from =
        in_.const_view().from(static_cast<std::size_t>((sample * positions_ + position) * features_));
    for (std::int64_t i = 0; i < features_; ++i)
      rows[static_cast<std::size_t>(sample * features_ + i)] = static_cast<float>(kernels::element(from, i));
  }
  const dnnl_status_t done =
      dnnl_sgemm('N', 'T', samples_, vocabulary_, features_, 1.0F, rows.data(), features_,
                 plain_weights_->floats(), features_, 0.0F, scores.data(), vocabulary_);
  if (done != dnnl_success)
    return fail(ErrorKind::unavailable, "oneDNN cannot multiply {} rows by {} words: status {}", samples_,
                vocabulary_, static_cast<int>(done));
  return {};
}

}  // namespace

OperatorPtr make_operator(Plan& plan, const op::VocabularyLoss& spec) {
  return std::make_unique<VocabularyLoss>(plan, spec);
}

}  // namespace dlrun::runtime
