// A real but tiny model behind the Engine interface: softmax regression with momentum and one running
// statistic, in plain loops. It trains in microseconds, so that tests of the loop, of checkpoints and of
// several ranks in one process need no compiled plan.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::test {

class FakeEngine : public runtime::Engine,
                   private runtime::DeviceAccumulating,
                   private runtime::ServedEngine,
                   protected runtime::DeviceReducing {
 public:
  FakeEngine(const runtime::InputShape& shape, std::int64_t batch)
      : pixels_(static_cast<std::size_t>(shape.channels * shape.height * shape.width)),
        classes_(static_cast<std::size_t>(shape.classes)),
        batch_(batch),
        input_(pixels_ * static_cast<std::size_t>(batch)),
        labels_(static_cast<std::size_t>(batch)),
        weights_(classes_ * pixels_ + classes_),
        momentum_(weights_.size()),
        gradients_(weights_.size() + spare) {
    using Role = runtime::TensorInfo::Role;
    const auto rows = static_cast<std::int64_t>(classes_), columns = static_cast<std::int64_t>(pixels_);
    tensors_ = {{"fc.weight", {rows, columns}, Role::parameter},
                {"fc.bias", {rows}, Role::parameter},
                {"input.running_mean", {1}, Role::statistic},
                {"fc.weight.momentum", {rows, columns}, Role::momentum},
                {"fc.bias.momentum", {rows}, Role::momentum}};
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = 0.01F * std::sin(static_cast<float>(i));
    buckets_ = {{0, classes_ * pixels_}, {classes_ * pixels_, classes_ + spare}};
  }

  std::int64_t batch() const override { return batch_; }
  std::span<float> input() override { return input_; }
  std::span<std::int32_t> labels() override { return labels_; }
  runtime::MixedLabels mixed_labels() override { return {other_labels_, own_weights_}; }

  runtime::BatchResult train_batch(std::uint64_t step,
                                   const std::function<void(std::size_t)>& on_bucket) override {
    steps_seen.push_back(step);
    if (averaged) std::abort();  // trained on averages
    std::fill(gradients_.begin(), gradients_.end() - spare, 0.0F);
    const runtime::BatchResult result = pass(true);
    accumulate();
    if (computes_on_a_device && work_) work_();
    if (device_sum) return sum_on_device(), result;
    for (std::size_t i = 0; i < buckets_.size(); ++i) on_bucket(i);
    return result;
  }

  Result<void> set_shard(int shard) override {
    shard_ = shard;
    return {};
  }

  void apply(const runtime::UpdateStep& update) override {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      momentum_[i] = momentum * momentum_[i] +
                     (update.gradient_scale * gradients_[i] + update.weight_decay * weights_[i]);
      weights_[i] -= update.learning_rate * momentum_[i];
    }
    if (poison_after > 0 && steps_seen.size() >= poison_after) weights_[0] = NAN;
  }

  void swap_averages() override { averaged = !averaged; }
  runtime::BatchResult evaluate_batch() override {
    evaluated_by_weights = evaluated_by_weights || !averaged;
    return pass(false);
  }
  std::span<float> gradients() override { return gradients_; }
  std::span<const runtime::Bucket> buckets() const override { return buckets_; }
  std::span<float> spare_slots() override { return std::span(gradients_).last(spare); }
  std::vector<runtime::GradientSlice> gradient_slices() const override {
    return {{"fc.weight", 0, classes_ * pixels_}, {"fc.bias", classes_ * pixels_, classes_}};
  }
  const std::vector<runtime::TensorInfo>& tensors() const override { return tensors_; }
  std::uint64_t plan_hash() const override { return 42; }
  std::size_t memory_bytes() const override { return weights_.size() * 3 * sizeof(float); }

  Result<void> read_tensor(std::size_t index, std::span<float> out) const override {
    const std::span<const float> place = const_cast<FakeEngine*>(this)->tensor(index);
    if (place.size() != out.size()) return fail(ErrorKind::internal, "size of {}", tensors_[index].name);
    std::copy(place.begin(), place.end(), out.begin());
    return {};
  }
  Result<void> write_tensor(std::size_t index, std::span<const float> values) override {
    const std::span<float> place = tensor(index);
    if (place.size() != values.size()) return fail(ErrorKind::internal, "size of {}", tensors_[index].name);
    std::copy(values.begin(), values.end(), place.begin());
    return {};
  }

  runtime::DeviceAccumulating* accumulating() override {
    return accumulates_itself || (device_sum && device_sum->keeps()) ? this : nullptr;
  }
  void set_batch(Batch batch) override { which_ = batch; }
  runtime::DeviceReducing* reducing() override { return device_sum ? this : nullptr; }

  runtime::ServedEngine* served() override { return this; }
  Result<std::span<float>> weights() override { return std::span(weights_); }
  Result<void> weights_changed() override { return {}; }
  Result<void> read_state(std::size_t, std::size_t offset, std::span<float> out) const override {
    std::copy_n(momentum_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }
  Result<void> write_state(std::size_t, std::size_t offset, std::span<const float> values) override {
    std::copy(values.begin(), values.end(), momentum_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }

  void while_waiting(const std::function<void()>& work) override { work_ = work; }

  bool accumulates_itself = false;
  std::unique_ptr<runtime::DeviceAllreduce> device_sum;  // set: sums gradients itself, as on a device
  bool averaged = false, evaluated_by_weights = false;
  bool computes_on_a_device = false;  // has taken its rows when it waits
  std::vector<std::uint64_t> steps_seen;
  std::size_t poison_after = 0;  // steps after which a weight becomes NaN

 private:
  static constexpr std::size_t spare = 16;

  void set_sums(Sums sums) override { sums_ = sums; }
  bool averages_state() const override { return false; }
  Result<void> average_state(int) override { return {}; }
  Result<double> seconds_of_sums() override { return 0.0; }

  void sum_on_device() {
    if (sums_ == Sums::alone) return;
    if (which_ == Batch::earlier) {
      if (!device_sum->keep(summed_++, gradients_.data(), gradients_.size() - spare, nullptr)) std::abort();
      return;
    }
    summed_ = 0;
    for (const runtime::Bucket& bucket : buckets_) {
      const std::size_t end = std::min(bucket.offset + bucket.length, gradients_.size() - spare);
      if (!device_sum->sum(gradients_.data() + bucket.offset, end - bucket.offset, nullptr)) std::abort();
    }
  }

  void accumulate() {
    kept_.resize(gradients_.size() - spare);
    for (std::size_t i = 0; accumulates_itself && i < kept_.size(); ++i) {
      gradients_[i] = kept_[i] + gradients_[i];
      kept_[i] = which_ == Batch::last ? 0 : gradients_[i];
    }
  }

  std::span<float> tensor(std::size_t index) {
    const std::size_t matrix = classes_ * pixels_;
    switch (index) {
      case 0:
        return std::span(weights_).first(matrix);
      case 1:
        return std::span(weights_).subspan(matrix);
      case 2:
        return {&running_mean_, 1};
      case 3:
        return std::span(momentum_).first(matrix);
      default:
        return std::span(momentum_).subspan(matrix);
    }
  }

  runtime::BatchResult pass(bool train) {
    runtime::BatchResult result;
    for (std::size_t row = 0; row < labels_.size(); ++row)
      if (labels_[row] >= 0) row_pass(row, train, result);
    if (train && shard_ == 0) running_mean_ = 0.9F * running_mean_ + 0.1F * input_[0];
    return result;
  }

  void row_pass(std::size_t row, bool train, runtime::BatchResult& result) {
    const float* x = input_.data() + row * pixels_;
    std::vector<float> score(classes_);
    for (std::size_t c = 0; c < classes_; ++c) {
      score[c] =
          weights_[classes_ * pixels_ + c] + (train ? 0.0F : 1e-3F * running_mean_ * static_cast<float>(c));
      for (std::size_t i = 0; i < pixels_; ++i) score[c] += weights_[c * pixels_ + i] * x[i];
    }
    const auto best = static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin());
    const float top = score[best];
    float sum = 0;
    for (float& s : score) sum += s = std::exp(s - top);
    const auto label = static_cast<std::size_t>(labels_[row]);
    result.loss_sum += -std::log(static_cast<double>(score[label] / sum));
    result.correct += best == label ? 1 : 0;
    if (!train) return;
    for (std::size_t c = 0; c < classes_; ++c) {
      const float grad = (score[c] / sum - (c == label ? 1.0F : 0.0F)) / static_cast<float>(batch_);
      for (std::size_t i = 0; i < pixels_; ++i) gradients_[c * pixels_ + i] += grad * x[i];
      gradients_[classes_ * pixels_ + c] += grad;
    }
  }

  std::size_t pixels_, classes_;
  std::int64_t batch_;
  std::vector<float> input_;
  std::vector<std::int32_t> labels_, other_labels_ = std::vector<std::int32_t>(labels_.size());
  std::vector<float> own_weights_ = std::vector<float>(labels_.size());
  static constexpr float momentum = 0.9F;
  std::vector<float> weights_, momentum_, gradients_;
  float running_mean_ = 0;
  std::vector<float> kept_;  // of batches before the last of an update
  Batch which_ = Batch::last;
  std::size_t summed_ = 0;  // batches of the step that device_sum has
  Sums sums_ = Sums::together;
  int shard_ = 0;
  std::function<void()> work_;
  std::vector<runtime::TensorInfo> tensors_;
  std::vector<runtime::Bucket> buckets_;
};

}  // namespace dlrun::test
