// A real but tiny language model behind the Engine interface: the scores of the next token are a row of a
// table for the token before it (a bigram model), trained by plain gradient steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/engine/engine.hpp"

namespace dlrun::test {

class FakeLanguageEngine : public runtime::Engine, private runtime::LanguageEngine {
 public:
  FakeLanguageEngine(const runtime::InputShape& shape, std::int64_t batch)
      : words_(static_cast<std::size_t>(shape.classes)),
        length_(static_cast<std::size_t>(shape.height)),
        batch_(batch),
        tokens_(length_ * static_cast<std::size_t>(batch)),
        labels_(tokens_.size()),
        weights_(words_ * words_),
        gradients_(weights_.size() + spare) {
    const auto side = static_cast<std::int64_t>(words_);
    tensors_ = {{"table.weight", {side, side}, runtime::TensorInfo::Role::parameter}};
    buckets_ = {{0, gradients_.size()}};
  }

  std::int64_t batch() const override { return batch_; }
  std::span<float> input() override { return {}; }
  std::span<std::int32_t> tokens() override { return tokens_; }
  std::span<std::int32_t> labels() override { return labels_; }
  runtime::LanguageEngine* language() override { return this; }

  runtime::BatchResult train_batch(std::uint64_t,
                                   const std::function<void(std::size_t)>& on_bucket) override {
    std::fill(gradients_.begin(), gradients_.end() - spare, 0.0F);
    const runtime::BatchResult result = pass(gradients_.data());
    on_bucket(0);
    return result;
  }
  void apply(const runtime::UpdateStep& update) override {
    for (std::size_t i = 0; i < weights_.size(); ++i)
      weights_[i] -= update.learning_rate * update.gradient_scale * gradients_[i];
  }
  runtime::BatchResult evaluate_batch() override { return pass(nullptr); }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(words_); }
  Result<void> next_scores(std::int64_t position, std::span<float> scores) override {
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch_); ++row) {
      const auto token =
          static_cast<std::size_t>(tokens_[row * length_ + static_cast<std::size_t>(position)]);
      std::copy_n(weights_.data() + token * words_, words_, scores.data() + row * words_);
    }
    return {};
  }

  std::span<float> gradients() override { return gradients_; }
  std::span<const runtime::Bucket> buckets() const override { return buckets_; }
  std::span<float> spare_slots() override { return std::span(gradients_).last(spare); }
  const std::vector<runtime::TensorInfo>& tensors() const override { return tensors_; }
  Result<void> read_tensor(std::size_t, std::span<float> out) const override {
    std::copy(weights_.begin(), weights_.end(), out.begin());
    return {};
  }
  Result<void> write_tensor(std::size_t, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), weights_.begin());
    return {};
  }
  std::uint64_t plan_hash() const override { return 43; }
  std::size_t memory_bytes() const override { return weights_.size() * sizeof(float); }

 private:
  static constexpr std::size_t spare = 16;

  // A row's loss is the mean of its positions'; the gradient, where it is asked for, that of the mean over
  // rows.
  runtime::BatchResult pass(float* gradient) {
    runtime::BatchResult result;
    std::vector<float> part(words_);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] < 0) continue;
      const auto from = static_cast<std::size_t>(tokens_[i]), to = static_cast<std::size_t>(labels_[i]);
      const float* const score = weights_.data() + from * words_;
      const float* const best = std::max_element(score, score + words_);
      float sum = 0;
      for (std::size_t w = 0; w < words_; ++w) sum += part[w] = std::exp(score[w] - *best);
      result.loss_sum -= std::log(static_cast<double>(part[to] / sum)) / static_cast<double>(length_);
      result.correct += static_cast<std::size_t>(best - score) == to ? 1 : 0;
      if (gradient == nullptr) continue;
      for (std::size_t w = 0; w < words_; ++w)
        gradient[from * words_ + w] +=
            (part[w] / sum - (w == to ? 1.0F : 0.0F)) / static_cast<float>(labels_.size());
    }
    return result;
  }

  std::size_t words_, length_;
  std::int64_t batch_;
  std::vector<std::int32_t> tokens_, labels_;
  std::vector<float> weights_, gradients_;
  std::vector<runtime::TensorInfo> tensors_;
  std::vector<runtime::Bucket> buckets_;
};

}  // namespace dlrun::test
